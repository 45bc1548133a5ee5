"""What an import says of the files that it stored, as JSON: version 1.

An importer reads it to go on where it ended, a reader to know what must be there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ranklog.errors import Corrupt, NewerVersion
from ranklog.model.frame import Fence
from ranklog.model.stream import Stream

VERSION = 1
# Names end in one of these: fixed before rows are stored, told when they are.
BEGIN, DONE = "begin", "done"


@dataclass(frozen=True, slots=True)
class Known:
    """One incarnation of a file, as far as it is stored. `hash` is of its first `bytes` bytes.

    `rows` is the next sequence number; `lines` counts physical lines; `is_open`: the last one had
    no line feed. `fences` cover all rows so far. `last_ts_ns` is what an untimed line inherits.
    """

    key: str
    stream: Stream
    head_bytes: int
    head_hash: str
    bytes: int = 0
    hash: str = ""
    rows: int = 0
    lines: int = 0
    is_open: bool = False
    fences: tuple[Fence, ...] = ()
    last_ts_ns: int | None = None


def encode_record(files: Sequence[Known]) -> bytes:
    """The record of these files."""
    rows = [{"stream": asdict(file.stream)} | _fields(file) for file in files]
    return json.dumps({"version": VERSION, "files": rows}, separators=(",", ":")).encode()


def _fields(file: Known) -> dict[str, Any]:
    fences = [[fence.hour, fence.ranges] for fence in file.fences]
    names = [name for name in Known.__slots__ if name not in ("stream", "fences")]
    return {name: getattr(file, name) for name in names} | {"fences": fences}


def decode_record(data: bytes, key: str) -> Iterator[Known]:
    """The files of a record; `key` is for the message. Raises Corrupt, NewerVersion."""
    try:
        record = json.loads(data)
        if record["version"] > VERSION:
            raise NewerVersion(f"import record of version {record['version']}: {key}")
        for row in record["files"]:
            stream = Stream(**row.pop("stream"))
            fences = tuple(
                Fence(hour, tuple((low, high) for low, high in ranges))
                for hour, ranges in row.pop("fences")
            )
            yield Known(stream=stream, fences=fences, **row)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Corrupt(
            f"damaged import record: {key}",
            hint="remove it and import its files again: a line that is stored twice is shown once",
        ) from error
