"""The streams of a merge: one table for all indexes, what they say of each, and which rows count.

Shapes: n rows of all segments, one segment after the other, in the order of their indexes' keys.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ranklog.layout.build import StreamNotes
from ranklog.layout.drops import Drops
from ranklog.layout.point_index import SeriesTable
from ranklog.layout.rows import I32, I64, StreamRows
from ranklog.model.frame import Fence, StreamEnd
from ranklog.model.index import FrameRef, IndexHead, StreamEntry
from ranklog.model.stream import Stream
from ranklog.plan.overlap import difference, union


class Described(Protocol):
    """What reading a segment needs to know of it: an index, or what the segment says itself."""

    @property
    def key(self) -> str: ...
    @property
    def head(self) -> IndexHead: ...
    @property
    def series(self) -> SeriesTable: ...


# Rows of a stream that were deleted: half-open seq ranges, sorted, coalesced.
Hidden = Callable[[StreamEntry], Sequence[tuple[int, int]]]


def nothing_hidden(_: StreamEntry) -> Sequence[tuple[int, int]]:
    """No tombstones."""
    return ()


def all_hidden(head: IndexHead, hidden: Hidden) -> bool:
    """Whether a segment has no row that is shown."""
    return not any(difference(entry.ranges, hidden(entry)) for entry in head.streams)


@dataclass(slots=True)
class Streams:
    """Streams by id; of descriptions in other words the one that says most, of these the last.
    `said`, `dropped`, `hidden`: by place. `heads` and `rows`: what the segments' indexes say, and how many rows each has."""

    places: dict[str, int] = field(default_factory=dict)
    described: list[Stream] = field(default_factory=list)
    said: dict[int, StreamNotes] = field(default_factory=dict)  # but for drops
    dropped: dict[int, Drops] = field(default_factory=dict)
    hidden: dict[int, Sequence[tuple[int, int]]] = field(default_factory=dict)
    frames: dict[FrameRef, None] = field(default_factory=dict)
    heads: list[IndexHead] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)

    def add(self, head: IndexHead, hidden: Hidden) -> I32:
        """Take in what an index says; the place of each of its streams."""
        found = []
        for entry in head.streams:
            place = self.places.setdefault(entry.stream_id, len(self.places))
            if place == len(self.described):
                self.described.append(entry.stream)
            elif _says(entry.stream) >= _says(self.described[place]):
                self.described[place] = entry.stream
            gone = hidden(entry)
            if gone:
                self.hidden[place] = gone
            self.said[place] = merged_notes(self.said.get(place, StreamNotes()), entry)
            if entry.drops:
                self.dropped.setdefault(place, Drops()).add(entry.drops)
            found.append(place)
        self.frames.update(dict.fromkeys(head.frames))
        self.heads.append(head)
        self.rows.append(0)
        return np.array(found, np.int32)

    def hold(self, rows: int) -> None:
        """The segment of the index that was added last has so many."""
        self.rows[-1] = rows

    @property
    def notes(self) -> dict[int, StreamNotes]:
        """What all say of each stream."""
        none = Drops()
        return {
            place: replace(note, drops=tuple(self.dropped.get(place, none)))
            for place, note in self.said.items()
        }

    @property
    def streams(self) -> tuple[Stream, ...]:
        return tuple(self.described)

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(self.places)


def _says(stream: Stream) -> int:
    return sum(getattr(stream, name) is not None for name in Stream.__slots__)


def merged_notes(before: StreamNotes, entry: StreamEntry) -> StreamNotes:
    """What both say of a stream but for its drops, so that a reader concludes from one what it did from
    two."""
    if not (entry.fences or entry.end or entry.alive_ns is not None):
        return before
    alive = [ns for ns in (before.alive_ns, entry.alive_ns) if ns is not None]
    return StreamNotes(
        fences=_fences((*before.fences, *entry.fences)),
        end=_end(before.end, entry.end),
        alive_ns=max(alive, default=None),
    )


def _fences(fences: Sequence[Fence]) -> tuple[Fence, ...]:
    """One per hour: what an older heartbeat said of it is part of what a newer one says."""
    ranges: dict[int, list[tuple[int, int]]] = {}
    for fence in fences:
        ranges.setdefault(fence.hour, []).extend(fence.ranges)
    return tuple(Fence(hour, tuple(union(found))) for hour, found in ranges.items())


def _end(before: StreamEnd | None, after: StreamEnd | None) -> StreamEnd | None:
    """The later one; of equal ones the first."""
    if before is None or after is None:
        return before or after
    return after if after.end_seq > before.end_seq else before


# --- rows ---------------------------------------------------------------------------------------
def rows_that_count(
    rows: StreamRows,
    hidden: dict[int, Sequence[tuple[int, int]]],
    losers: npt.NDArray[np.bool_] | None = None,
) -> I64:
    """Rows in (stream, seq) order, but for hidden ones and `losers`; of a line that is there twice then,
    the first."""
    # stable: of equal ones the first segment's is first
    order = np.lexsort((rows.seq, rows.stream))
    if losers is not None:
        order = order[~losers[order]]
    keep = np.ones(len(order), np.bool_)
    stream, seq = rows.stream[order], rows.seq[order]
    keep[1:] = (stream[1:] != stream[:-1]) | (seq[1:] != seq[:-1])
    keep &= ~_is_hidden(rows, hidden)[order]
    chosen: I64 = order[keep]
    return chosen


def _is_hidden(
    rows: StreamRows, hidden: dict[int, Sequence[tuple[int, int]]]
) -> npt.NDArray[np.bool_]:
    found = np.zeros(len(rows), np.bool_)
    for place, ranges in hidden.items():
        at = np.flatnonzero(rows.stream == place)
        starts = np.array([first for first, _ in ranges], np.int64)
        ends = np.array([end for _, end in ranges], np.int64)
        inside = np.searchsorted(starts, rows.seq[at], "right") - 1
        found[at] = (inside >= 0) & (rows.seq[at] < ends[np.maximum(inside, 0)])
    return found
