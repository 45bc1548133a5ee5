"""The share of the disk that a spool may have, and what goes first when it is used up.

Before it is: debug lines and progress bars are refused (see `admission`). When it is: the oldest
frames of streams that flood, then of the others, without a warning, but for those with the last lines of a stream; every other frame of
telemetry; then the rest, warnings and first lines of streams last. A dropped frame's header stays,
its disk blocks are given back, and its lines are told as dropped by the stream they were of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from ranklog import limits
from ranklog.agent.disk_space import disk_bytes
from ranklog.agent.rows import BULK, FLOOD, KEPT, TELEMETRY
from ranklog.agent.wal import Wal
from ranklog.agent.wal_segment import Entry
from ranklog.errors import RanklogError
from ranklog.model.frame import FrameStream
from ranklog.stream.frames import PeekedFrame, peek_header

QUOTA_BYTES = 2 * 1024 * limits.MIB
# When frames are dropped, down to this part of the quota, so that it is not done line by line.
DROP_TO = 0.95
# Of every stream, so many last lines are dropped last.
TAIL_LINES = 10_000

Lost = Callable[[FrameStream], None]


def used_bytes(folder: Path, wal: Wal) -> int:
    """What the spool takes on the disk: the log, and what processes wrote and nobody took yet."""
    try:
        names = list(folder.iterdir())
    except OSError:
        names = []
    return wal.disk_bytes + sum(disk_bytes(path) for path in names if path.is_file())


def make_room(wal: Wal, bytes_wanted: int, lost: Lost) -> int:
    """Drop frames that wait until so many bytes are given back; how many were."""
    freed = 0
    for number, entry in _in_order(wal):
        if freed >= bytes_wanted:
            break
        data = wal.read(number, entry)
        keep = 0
        if data is not None:
            try:
                peeked = peek_header(data)
                keep = peeked.payload_at
                for stream in peeked.header.streams:
                    lost(stream)
            except RanklogError:
                keep = 0
        freed += wal.drop(number, entry, keep)
    return freed


def _in_order(wal: Wal) -> Iterator[tuple[int, Entry]]:
    waiting = wal.unsent_frames()
    by_class = {
        klass: [item for item in waiting if item[1].klass == klass]
        for klass in (FLOOD, BULK, TELEMETRY, KEPT)
    }
    last_lines = _last_lines(wal, [*by_class[FLOOD], *by_class[BULK]])
    for klass in (FLOOD, BULK):
        yield from (item for item in by_class[klass] if item not in last_lines)
    yield from by_class[TELEMETRY][::2]
    yield from last_lines
    yield from by_class[TELEMETRY][1::2]
    yield from by_class[KEPT]


def _last_lines(wal: Wal, frames: Iterable[tuple[int, Entry]]) -> list[tuple[int, Entry]]:
    """The frames that hold the last TAIL_LINES of some stream, oldest first."""
    left: dict[str, int] = {}
    found = []
    for number, entry in reversed(list(frames)):
        peeked = _peek(wal, number, entry)
        if peeked is None:
            continue
        is_last = False
        for stream in peeked.header.streams:
            name = stream.stream.stream_id
            is_last = is_last or (stream.rows > 0 and left.get(name, TAIL_LINES) > 0)
            left[name] = left.get(name, TAIL_LINES) - stream.rows
        if not is_last:
            break  # older frames of streams that went silent long ago are no last words
        found.append((number, entry))
    return found[::-1]


def _peek(wal: Wal, number: int, entry: Entry) -> PeekedFrame | None:
    data = wal.read(number, entry)
    try:
        return None if data is None else peek_header(data)
    except RanklogError:
        return None
