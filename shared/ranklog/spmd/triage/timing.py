"""When lines without a time of their own were written: not before what precedes them in their stream,
not after what follows."""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Iterable

from ranklog.model.answer import Line
from ranklog.model.frame import TS_ARRIVAL, TS_INHERITED

_FAR_NS = 1 << 62


def has_time(line: Line) -> bool:
    """Whether its time is its own."""
    return not line.flags & (TS_INHERITED | TS_ARRIVAL)


class Timing:
    """Latest possible times, from timed lines of the same stream that are known."""

    def __init__(self, lines: Iterable[Line]) -> None:
        timed: dict[str, dict[int, int]] = defaultdict(dict)
        for line in lines:
            if has_time(line):
                timed[line.stream_id][line.seq] = line.ts_ns
        self._timed = {name: sorted(items.items()) for name, items in timed.items()}

    def latest(self, line: Line) -> int:
        """When it was written at the latest."""
        if has_time(line):
            return line.ts_ns
        items = self._timed.get(line.stream_id, [])
        at = bisect.bisect_right(items, (line.seq, _FAR_NS))
        return items[at][1] if at < len(items) else _FAR_NS
