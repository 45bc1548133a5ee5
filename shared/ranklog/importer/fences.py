"""Which rows of a stream lie in which event hour."""

from __future__ import annotations

import numpy as np

from ranklog.importer.lines import I64
from ranklog.limits import HOUR_NS
from ranklog.model.frame import Fence

# A file whose lines jump to and fro between hours; past this the hour gets no fence, so no answer
# claims that it is complete.
RANGES_PER_HOUR_MAX = 4_096


class Hours:
    """Sequence ranges per hour, gathered while a file is read."""

    def __init__(self, fences: tuple[Fence, ...]) -> None:
        self._ranges = {fence.hour: [list(pair) for pair in fence.ranges] for fence in fences}

    def add(self, first_seq: int, ts: I64) -> None:
        """Rows from `first_seq` on have these times."""
        hours = ts // HOUR_NS
        edges = np.flatnonzero(hours[1:] != hours[:-1]) + 1
        bounds = np.concatenate(([0], edges, [len(hours)])) + first_seq
        for hour, low, high in zip(
            hours[bounds[:-1] - first_seq].tolist(),
            bounds[:-1].tolist(),
            bounds[1:].tolist(),
            strict=True,
        ):
            ranges = self._ranges.setdefault(hour, [])
            if ranges and ranges[-1][1] == low:
                ranges[-1][1] = high
            elif len(ranges) <= RANGES_PER_HOUR_MAX:
                ranges.append([low, high])

    def record(self) -> tuple[Fence, ...]:
        """All that a later import needs to go on, in order of hours."""
        return tuple(
            Fence(hour, tuple((low, high) for low, high in ranges))
            for hour, ranges in sorted(self._ranges.items())
        )

    def fences(self) -> tuple[Fence, ...]:
        """What can be certified: an hour whose ranges were not cut off."""
        return tuple(f for f in self.record() if len(f.ranges) <= RANGES_PER_HOUR_MAX)
