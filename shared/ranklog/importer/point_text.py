"""Points of trackers' files as text: one JSON object a line, in the order in which they were written.

    {"ranklog.points":1}
    {"ts_ns":…,"iteration":3,"values":{"loss":2.5},"dims":{}}

What a file has grown by is further lines of its text, so an import of it goes on where the last one
ended. A value is a number, null (not measured) or the summary of a tensor.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

HEAD = b'{"ranklog.points":1}\n'


def point_line(
    ts_ns: int, iteration: int | None, values: Mapping[str, Any], dims: Mapping[str, Any]
) -> bytes:
    """A record with its line feed. NaN and infinities are written as Python's json has them."""
    record = {"ts_ns": ts_ns, "iteration": iteration, "values": values, "dims": dims}
    return json.dumps(record, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"


def read_points(data: bytes) -> Iterator[dict[str, Any]]:
    """Records of whole lines; the first line of a file is none."""
    for line in data.split(b"\n"):
        if line and line + b"\n" != HEAD:
            yield json.loads(line)
