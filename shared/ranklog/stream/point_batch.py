"""Consecutive records of telemetry of one stream as columns, on their way into a frame.

Shapes: n records, v values; nothing per value is a Python object but a summary.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, TypeAlias

# Dimensions as canonical JSON, and names: values that come together.
PointSet: TypeAlias = "tuple[str, tuple[str, ...]]"


@dataclass(slots=True)
class PointBatch:
    """`set` holds keys of `sets`, `context` keys of `contexts` (canonical JSON, None: none).

    `size[r]` values of record r, as many as its set has names, stand in `values` one record after
    the other. `missing` and the places of `summaries` ascend and count values of the batch.
    """

    ts: array[int]  # int64
    rank: array[int]  # int32
    iteration: array[int]  # int64
    set: Sequence[int]
    sets: Mapping[int, PointSet]
    context: Sequence[int]
    contexts: Mapping[int, str | None]
    size: Sequence[int]
    values: array[float]  # float64
    missing: Sequence[int] = ()
    summaries: Sequence[tuple[int, Mapping[str, Any]]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.ts)

    def __getitem__(self, part: slice) -> PointBatch:
        """A run of the records."""
        start, stop, _ = part.indices(len(self))
        first = sum(self.size[:start])
        end = first + sum(self.size[start:stop])
        low, high = bisect_left(self.missing, first), bisect_left(self.missing, end)
        return PointBatch(
            self.ts[part],
            self.rank[part],
            self.iteration[part],
            self.set[part],
            self.sets,
            self.context[part],
            self.contexts,
            self.size[part],
            self.values[first:end],
            [at - first for at in self.missing[low:high]],
            [(at - first, one) for at, one in self.summaries if first <= at < end],
        )

    def parts(self, values: int) -> Iterator[PointBatch]:
        """The records in runs of about so many values, each record whole."""
        if len(self.values) <= values:
            yield self
            return
        start = 0
        ends = list(accumulate(self.size))
        while start < len(self):
            before = ends[start - 1] if start else 0
            stop = max(start + 1, bisect_left(ends, before + values + 1))
            yield self[start:stop]
            start = stop
