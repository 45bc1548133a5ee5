"""Consecutive lines of one stream as columns, on their way into a frame.

Shapes: every column has n numbers; nothing per line is a Python object but its text.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ranklog.model.frame import NO_ITERATION, STREAM_RANK, CallSite


@dataclass(slots=True)
class RowBatch:
    """Lines that are records of their own: valid UTF-8, no group, no line feed.

    `site` holds keys of `sites` (0: none). `common` is metadata of every line, `metadata` of single
    ones, (line, values) with lines ascending; no key is in both.
    """

    ts: array[int]  # int64
    level: array[int]  # int16
    texts: Sequence[bytes]
    site: Sequence[int] = ()
    sites: Mapping[int, CallSite | None] = field(default_factory=dict)
    rank: array[int] = field(default_factory=lambda: array("i"))
    iteration: array[int] = field(default_factory=lambda: array("q"))
    flags: array[int] = field(default_factory=lambda: array("H"))
    body_at: array[int] = field(default_factory=lambda: array("I"))
    common: Mapping[str, Any] | None = None
    metadata: Sequence[tuple[int, Mapping[str, Any]]] = ()

    def __post_init__(self) -> None:
        """Columns that were not given are what "nothing" is."""
        count = len(self.texts)
        self.site = self.site or (0,) * count
        self.rank = self.rank or array("i", [STREAM_RANK]) * count
        self.iteration = self.iteration or array("q", [NO_ITERATION]) * count
        self.flags = self.flags or array("H", [0]) * count
        self.body_at = self.body_at or array("I", [0]) * count

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, part: slice) -> RowBatch:
        """A run of the lines."""
        start, stop, _ = part.indices(len(self))
        return RowBatch(
            self.ts[part],
            self.level[part],
            self.texts[part],
            self.site[part],
            self.sites,
            self.rank[part],
            self.iteration[part],
            self.flags[part],
            self.body_at[part],
            self.common,
            [(line - start, values) for line, values in self.metadata if start <= line < stop],
        )

    def parts(self, size: int) -> Iterator[RowBatch]:
        """The lines in runs of at most so many."""
        if len(self) <= size:
            yield self
            return
        for start in range(0, len(self), size):
            yield self[start : start + size]
