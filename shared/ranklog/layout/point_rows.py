"""Points on their way into segments: records and values as columns of numpy.

Shapes: n records, v values, k series (name and dimensions). Record r has values
`first[r] .. first[r] + size[r]`. Absent is as in `model.frame`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ranklog.layout.rows import I32, I64
from ranklog.model.stream import Stream

F64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SummaryRows:
    """u summaries: of the values `at` I64[u], ascending; columns of `model.frame.PointColumns`."""

    at: I64
    flags: npt.NDArray[np.uint16]
    counts: I64  # [u, 3]
    numbers: F64  # [u, 5]
    quantiles: Any  # pa binary [u]
    histograms: Any  # pa binary [u]


@dataclass(frozen=True, slots=True)
class PointRows:
    """See the module. `key` I32[v] is each value's place among the series, which are sorted by
    (name, dimensions): series s is `names[series_name[s]]`, `dims[series_dims[s]]`.

    `context` I32[n]: 1 + place in `contexts`, 0 none. `missing` bool[v] or None: not measured.
    """

    streams: tuple[Stream, ...]
    stream_ids: tuple[str, ...]
    stream: I32
    seq: I64
    ts: I64
    iteration: I64
    rank: I32
    context: I32
    contexts: tuple[str, ...]
    first: I64
    size: I64
    key: I32
    values: F64
    missing: npt.NDArray[np.bool_] | None
    summaries: SummaryRows
    names: tuple[str, ...]
    dims: tuple[str, ...]
    series_name: I32
    series_dims: I32

    def __len__(self) -> int:
        return len(self.stream)

    @property
    def offsets(self) -> I64:
        """Where the bytes of each record's values begin, and where the last ones end."""
        return 8 * np.append(self.first, len(self.values))


def ranges_to_places(first: I64, size: I64) -> I64:
    """All of first[i] .. first[i] + size[i], one range after the other."""
    ends = np.cumsum(size)
    total = int(ends[-1]) if len(ends) else 0
    places: I64 = np.arange(total) + np.repeat(first - (ends - size), size)
    return places
