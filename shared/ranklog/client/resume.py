"""From page to page: how far each segment was shown, when some had no time to be read.

A page shows the first lines of all segments that it read, up to its last line; those it had no time
for stay where they were, and the next page reads them from there, beside the rest. Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ranklog import limits
from ranklog.layout.index import SegmentIndex
from ranklog.model.answer import Line
from ranklog.plan.build import behind, is_beyond
from ranklog.plan.tasks import SegmentScan

NAME_BYTES = 4
Position = tuple[int, str, int]  # ts, stream id, seq of the last line that was shown


@dataclass(frozen=True, slots=True)
class Progress:
    """`after`: where every segment is (None: at its beginning), `done`: all of it was shown; but
    `late` segments, by name, are at a place of their own."""

    after: Position | None = None
    done: bool = False
    late: Mapping[str, Position | None] = field(default_factory=dict)

    @property
    def common(self) -> Position | None:
        """A place that no segment is before."""
        return None if self.late or self.done else self.after

    def scans_left(
        self, scans: Sequence[SegmentScan], indexes: Mapping[int, SegmentIndex], *, newest: bool
    ) -> list[SegmentScan]:
        """What is left of each segment; only where `late` ones differ from the others."""
        left = []
        for scan in scans:
            name = segment_name(indexes[scan.number])
            replaced = self._late_of(indexes[scan.number], newest=newest)
            if self.done and name not in self.late and not replaced:
                continue
            at = replaced[0] if replaced else self.late.get(name, self.after)
            if at is None:
                left.append(scan)
            elif not is_beyond(at, scan.min_ts, scan.max_ts, newest=newest):
                entries = indexes[scan.number].head.streams
                left.append(replace(scan, after=behind(at, entries)))
        return left

    def _late_of(self, index: SegmentIndex, *, newest: bool) -> list[Position | None]:
        """The first place of what was late when the last page was made and is compacted by now; all
        of the compacted one is read from there: a line may be shown again, and none is left out."""
        if not self.late:
            return []
        known = (_short(key) for key in index.head.replaces)
        places = [self.late[name] for name in known if name in self.late]
        if not places or None in places:
            return places and [None]
        at = [place for place in places if place is not None]
        return [max(at) if newest else min(at)]


def segment_name(index: SegmentIndex) -> str:
    """Short, and the same on every page."""
    return _short(index.key)


def _short(key: str) -> str:
    return hashlib.blake2b(key.encode(), digest_size=NAME_BYTES).hexdigest()


def cut_safely(lines: Sequence[Line], late: Sequence[SegmentScan], *, newest: bool) -> list[Line]:
    """The lines that come before any line that a late segment may hold."""
    if newest:
        edge = max(scan.max_ts for scan in late)
        return [line for line in lines if line.ts_ns > edge]
    edge = min(scan.min_ts for scan in late)
    return [line for line in lines if line.ts_ns < edge]


def is_too_many(progress: Progress, late: Collection[str]) -> bool:
    """Whether a cursor can't name them all."""
    return len(progress.late.keys() | set(late)) > limits.CURSOR_LATE_MAX


def next_progress(
    progress: Progress, last: Position | None, late: Collection[str], *, newest: bool
) -> Progress | None:
    """Behind a page that ends with `last` (None: it showed all that was read) and had no time for
    the segments `late`; None: nothing is left."""

    def later(a: Position | None, b: Position) -> Position:
        return b if a is None else min(a, b) if newest else max(a, b)

    places: dict[str, Position | None] = {
        name: progress.late.get(name, progress.after) for name in late
    }
    if last is None:
        return Progress(progress.after, True, places) if places else None
    after = progress.after if progress.done else later(progress.after, last)
    for name, at in progress.late.items():
        if name not in places and (progress.done or later(at, last) != after):
            places[name] = later(at, last)
    return Progress(after, progress.done, places)
