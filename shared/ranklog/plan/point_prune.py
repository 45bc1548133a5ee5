"""Which series and row groups of a segment of points might match, from its index alone. Pure.

A term answers True: every point, False: none, None: doubt. It is asked twice: of the series, as sets,
with the bounds of the whole segment, and of each row group that has points of series that are left.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from ranklog.errors import Corrupt
from ranklog.layout import point_schema as ps
from ranklog.layout.index import SegmentIndex
from ranklog.model import query as q
from ranklog.model.index import Bounds, RowGroup
from ranklog.plan.overlap import difference, intersection, union
from ranklog.plan.point_terms import VALUE
from ranklog.plan.prune_bounds import Answer, any_of, compare_all
from ranklog.plan.segments import row_ranges
from ranklog.plan.tables import tables_of
from ranklog.plan.tasks import (
    InContexts,
    InSeries,
    InStreams,
    LeafExpr,
    Nothing,
    Pairs,
    RankIs,
)

# Columns that a term's field is, with bounds in the index.
BOUNDED = {"iteration": ps.ITERATION, "time": ps.TS, "seq": ps.SEQ, VALUE: ps.VALUE}


class SegmentPoints:
    """One segment's series and row groups, with the sets of the query's terms."""

    def __init__(self, index: SegmentIndex, slots: tuple[Pairs, ...]) -> None:
        self.index, self.slots = index, slots
        self.table = index.series
        head = index.head
        self.point_groups = [
            i for i, group in enumerate(head.row_groups) if group.first_row >= self.table.records
        ]
        # first row of each series, and the end of the last
        self.edges: Sequence[int] = tables_of(index).known(
            "edges", lambda: tuple(accumulate(self.table.rows, initial=self.table.records))
        )
        if self.edges[-1] != self.table.records + head.rows:
            raise Corrupt(f"series do not have the rows of the segment: {index.key}")

    @property
    def everything(self) -> Pairs:
        """All points."""
        return ((self.table.records, self.edges[-1]),) if self.index.head.rows else ()

    def prune(self, expr: LeafExpr) -> tuple[Pairs, bool]:
        """Row ranges that might match, and whether every row in them does."""
        might, surely = self._series(expr, _GroupFacts(self, self._whole()))
        if not might:
            return (), False
        certain = not difference(might, surely)
        rows = tuple((self.edges[a], self.edges[b]) for a, b in might)
        if certain:
            return rows, True
        groups = [self.index.head.row_groups[i] for i in self.groups_of(rows)]
        kept = [group for group in groups if _GroupFacts(self, group).judge(expr) is not False]
        return tuple(intersection(rows, row_ranges(kept))), False

    def groups_of(self, rows: Pairs) -> list[int]:
        """Row groups of points, ascending, that have one of the rows, which ascend."""
        ends = tables_of(self.index).known("group ends", self._group_ends)
        found: list[int] = []
        past = 0
        for start, end in rows:
            first, last = bisect_right(ends, start), bisect_left(ends, end)
            found += self.point_groups[max(first, past) : last + 1]
            past = max(past, last + 1)
        return found

    def _group_ends(self) -> tuple[int, ...]:
        groups = self.index.head.row_groups
        return tuple(groups[i].first_row + groups[i].rows for i in self.point_groups)

    def _whole(self) -> RowGroup:
        """The segment as one row group."""
        return tables_of(self.index).known("whole", self._joined)

    def _joined(self) -> RowGroup:
        groups = [self.index.head.row_groups[i] for i in self.point_groups]
        names = groups[0].bounds if groups else {}
        bounds = {name: _join([group.bounds[name] for group in groups]) for name in names}
        streams = frozenset().union(*(group.streams for group in groups))
        return RowGroup(0, self.index.head.rows, {}, bounds, streams, frozenset(), False, (0, 0))

    def _series(self, expr: LeafExpr, whole: _GroupFacts) -> tuple[Pairs, Pairs]:
        """Series that might have a match, and those of which every point surely is one."""
        everything: Pairs = ((0, len(self.table)),) if len(self.table) else ()
        if isinstance(expr, InSeries):
            return self.slots[expr.slot], self.slots[expr.slot]
        if isinstance(expr, q.Not):
            might, surely = self._series(expr.item, whole)
            return tuple(difference(everything, surely)), tuple(difference(everything, might))
        if isinstance(expr, (q.And, q.Or)):
            both = isinstance(expr, q.And)
            join = intersection if both else _either
            might = surely = everything if both else ()
            for item in expr.items:
                item_might, item_surely = self._series(item, whole)
                might, surely = tuple(join(might, item_might)), tuple(join(surely, item_surely))
            return might, surely
        answer = whole.judge(expr)
        return () if answer is False else everything, everything if answer else ()


def _either(a: Pairs, b: Pairs) -> Pairs:
    return tuple(union((*a, *b)))


def _within(ranges: Pairs, at: int) -> Answer:
    """Whether the number is in one of the ranges, which ascend."""
    i = bisect_left(ranges, (at + 1,)) - 1
    return i >= 0 and ranges[i][0] <= at < ranges[i][1]


@dataclass(frozen=True, slots=True)
class _GroupFacts:
    """What bounds and streams of some rows say of a query."""

    segment: SegmentPoints
    group: RowGroup

    def judge(self, expr: LeafExpr) -> Answer:
        """What all of the rows say; of series nothing is known here."""
        if isinstance(expr, q.Everything):
            return True
        if isinstance(expr, Nothing):
            return False
        if isinstance(expr, q.And):
            found = [self.judge(item) for item in expr.items]
            return False if False in found else None if None in found else True
        if isinstance(expr, q.Or):
            return any_of(self.judge(item) for item in expr.items)
        if isinstance(expr, q.Not):
            inner = self.judge(expr.item)
            return None if inner is None else not inner
        if isinstance(expr, InContexts):
            return None if self.segment.slots[expr.slot] else False
        if isinstance(expr, InStreams):
            return self._streams(self.segment.slots[expr.slot])
        if isinstance(expr, RankIs):
            return self._bounded(ps.RANK, expr.field)
        if isinstance(expr, q.Field) and expr.key in BOUNDED:
            return self._bounded(BOUNDED[expr.key], expr)
        return None

    def _streams(self, ranges: Pairs) -> Answer:
        held = [_within(ranges, stream) for stream in self.group.streams]
        return True if all(held) else None if any(held) else False

    def _bounded(self, name: str, term: q.Field) -> Answer:
        bounds = self.group.bounds.get(name)
        if bounds is None:
            return None
        found = compare_all(bounds, term)
        if term.op == "!=" and len(found) > 1:
            return None  # "none of them": left to the scan
        return any_of(found)


def _join(bounds: Sequence[Bounds]) -> Bounds:
    lows = [one.low for one in bounds if one.low is not None]
    highs = [one.high for one in bounds if one.high is not None]
    return Bounds(
        min(lows, default=None),
        max(highs, default=None),
        any(one.has_null for one in bounds),
        any(one.has_nan for one in bounds),
    )
