"""From loaded indexes of points to scans: which series and row groups might hold a match. Pure.

A term answers True: every point, False: none, None: doubt. It is asked twice: of the series, as sets,
with the bounds of the whole segment, and of each row group that has points of series that are left.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

from ranklog.errors import Corrupt
from ranklog.layout import point_schema as ps
from ranklog.layout.index import SegmentIndex
from ranklog.model import query as q
from ranklog.model.frame import KIND_POINT
from ranklog.model.index import Bounds, RowGroup, StreamEntry
from ranklog.plan.near import NearKeys
from ranklog.plan.overlap import difference, intersection, union
from ranklog.plan.point_terms import (
    VALUE,
    PointResolver,
    PreparedPoints,
    any_term,
    prepare_points,
)
from ranklog.plan.prune_bounds import Answer, any_of, compare_all
from ranklog.plan.scope import StreamTerms
from ranklog.plan.segments import row_ranges
from ranklog.plan.sums import Part, pack_sums
from ranklog.plan.tables import tables_of
from ranklog.plan.tasks import (
    InContexts,
    InSeries,
    InStreams,
    LeafExpr,
    NearRows,
    Nothing,
    Pairs,
    Points,
    RankIs,
    SegmentScan,
)
from ranklog.plan.values import Regexes

_BOUNDED = {"iteration": ps.ITERATION, "time": ps.TS, "seq": ps.SEQ, VALUE: ps.VALUE}
# Row ranges of a scan; beyond it the gaps are read as well, and the terms decide.
_ROW_RANGES_MAX = 256


@dataclass(slots=True)
class PointPlan:
    """What to scan, and what was left out. `counted`: points of segments in which every point of the
    row ranges that are left matches. `failed`: indexes that contradict themselves."""

    expr: LeafExpr
    shape: Points
    scans: list[SegmentScan] = field(default_factory=list)
    near: tuple[NearRows, ...] = ()
    segments_listed: int = 0
    segments_pruned: int = 0
    row_groups_total: int = 0
    row_groups_pruned: int = 0
    failed: list[dict[str, str]] = field(default_factory=list)


def plan_points(
    expr: q.Expr,
    shape: Points,
    indexes: Mapping[int, SegmentIndex],
    skips: Mapping[int, Sequence[tuple[int, int, int]]],
    regexes: Regexes,
    *,
    entries: Sequence[StreamEntry] | None = None,
    full_scan: bool = False,
) -> PointPlan:
    """Scans of every segment of points that might hold a match. Raises BadQuery.

    `entries`: streams of lines as well, that say which ranks a host has; None: those of the points.
    """
    prepared = prepare_points(expr)
    points = {n: index for n, index in indexes.items() if index.head.kind == KIND_POINT}
    if entries is None:
        entries = [entry for index in points.values() for entry in index.head.streams]
    keys = NearKeys(prepared.near, entries)
    planner = _Planner(
        PointPlan(prepared.expr, shape),
        prepared,
        PointResolver(prepared, regexes, StreamTerms(regexes)),
        keys,
        full_scan,
    )
    for number, index in points.items():
        if index.head.segment is None:
            continue
        try:
            planner.add(number, index, tuple(skips.get(number, ())))
        except Corrupt as error:
            planner.plan.failed.append({"segment": index.key, "reason": error.message})
    planner.plan.near = keys.rows()
    return planner.plan


@dataclass(frozen=True, slots=True)
class _Planner:
    """Adds segments to a plan, one by one."""

    plan: PointPlan
    prepared: PreparedPoints
    resolver: PointResolver
    keys: NearKeys
    full_scan: bool

    def add(self, number: int, index: SegmentIndex, skip: tuple[tuple[int, int, int], ...]) -> None:
        """Raises Corrupt where sections of the index contradict each other."""
        plan = self.plan
        facts = SegmentPoints(index, self.resolver.fill(index))
        groups = facts.point_groups
        plan.segments_listed += 1
        plan.row_groups_total += len(groups)
        rows, certain = facts.everything, False
        if not self.full_scan:
            rows, certain = facts.prune(plan.expr)
        if not rows:
            plan.segments_pruned += 1
            plan.row_groups_pruned += len(groups)
            return
        kept = [i for i in groups if _overlaps(index.head.row_groups[i], rows)]
        plan.row_groups_pruned += len(groups) - len(kept)
        scan = _scan(number, index, facts, rows, kept, plan, certain=certain, skip=skip)
        plan.scans.append(replace(scan, **self._near(index)))

    def _near(self, index: SegmentIndex) -> dict[str, Any]:
        entries = index.head.streams
        told: dict[str, Any] = {"ranks": tuple(entry.stream.rank for entry in entries)}
        if self.prepared.near:
            told["keys"] = self.keys.of_streams(entries)
            told["hosts"] = self.keys.hosts(entries)
        return told


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
        kept = []
        for i in self.point_groups:
            group = self.index.head.row_groups[i]
            if _overlaps(group, rows) and (
                certain or _GroupFacts(self, group).judge(expr) is not False
            ):
                kept.append(group)
        return tuple(intersection(rows, row_ranges(kept))), certain

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
        if isinstance(expr, q.Field) and expr.key in _BOUNDED:
            return self._bounded(_BOUNDED[expr.key], expr)
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


def _overlaps(group: RowGroup, rows: Pairs) -> bool:
    start, end = group.first_row, group.first_row + group.rows
    i = bisect_left(rows, (end,)) - 1
    return i >= 0 and rows[i][1] > start


# --- the scan of a segment ------------------------------------------------------------------------
def _scan(
    number: int,
    index: SegmentIndex,
    facts: SegmentPoints,
    rows: Pairs,
    kept: Sequence[int],
    plan: PointPlan,
    *,
    certain: bool,
    skip: tuple[tuple[int, int, int], ...] = (),
) -> SegmentScan:
    head = index.head
    segment = head.segment
    assert segment is not None, "an index without a segment has no rows to scan"
    there = set(head.row_groups[0].chunks) if head.row_groups else set()
    if len(rows) > _ROW_RANGES_MAX:
        rows, certain = row_ranges([head.row_groups[i] for i in kept]), False
    needed = needed_columns(q.Everything() if certain else plan.expr, plan.shape)
    if skip:
        needed |= {ps.STREAM, ps.SEQ}
    needed &= there
    small = sorted(_parts(index, kept, needed, facts.table.records))
    return SegmentScan(
        number=number,
        key=segment.key,
        length=segment.length,
        etag=segment.etag,
        footer=index.footer_bytes,
        min_ts=head.min_ts,
        max_ts=head.max_ts,
        columns=tuple(name for name in head.row_groups[0].chunks if name in needed),
        ranked=any(entry.ranks for entry in head.streams),
        rows=rows,
        certain=certain,
        slots=facts.slots,
        skip=skip,
        small=_joined(small),
        sums=pack_sums(index.sums[0], small) if index.sums else "",
        records=facts.table.records,
    )


def whole_scan(number: int, index: SegmentIndex) -> SegmentScan:
    """Every column of every point of a segment, which has one."""
    facts = SegmentPoints(index, ())
    columns = (*ps.RECORD_COLUMNS, *ps.POINT_COLUMNS, *ps.SUMMARY_COLUMNS)
    plan = PointPlan(q.Everything(), Points(columns))
    rows, kept = facts.everything, facts.point_groups
    scan = _scan(number, index, facts, rows, kept, plan, certain=True)
    names = frozenset(name for group in index.head.row_groups for name in group.chunks)
    small = sorted(_parts(index, kept, names, facts.table.records, whole=True))
    sums = pack_sums(index.sums[0], small) if index.sums else ""
    return replace(scan, small=_joined(small), sums=sums)


def needed_columns(expr: LeafExpr, shape: Points) -> frozenset[str]:
    """Columns that a scan reads."""
    wanted = {ps.REC, *shape.columns}
    if ps.VALUE in wanted or any_term(expr, _asks_value):
        wanted |= {*ps.VALUE_COLUMNS}
    wanted.update(column for column in _asked(expr))
    return frozenset(wanted)


def _asks_value(leaf: LeafExpr) -> bool:
    return isinstance(leaf, q.Field) and leaf.key == VALUE


def _asked(expr: LeafExpr) -> Iterable[str]:
    if isinstance(expr, (q.And, q.Or)):
        for item in expr.items:
            yield from _asked(item)
    elif isinstance(expr, q.Not):
        yield from _asked(expr.item)
    elif isinstance(expr, RankIs):
        yield from (ps.STREAM, ps.RANK)
    elif isinstance(expr, InStreams):
        yield ps.STREAM
    elif isinstance(expr, InSeries):
        yield ps.SID
    elif isinstance(expr, InContexts):
        yield ps.CONTEXT
    elif isinstance(expr, q.NearSet):
        yield from (ps.STREAM, ps.RANK, ps.TS if expr.axis == "time" else ps.ITERATION)
    elif isinstance(expr, q.Field):
        yield _BOUNDED[expr.key]


def _parts(
    index: SegmentIndex,
    kept: Sequence[int],
    needed: frozenset[str],
    records: int,
    *,
    whole: bool = False,
) -> Iterator[Part]:
    """Chunks of the needed columns, with their checksums: all records, and the points that are left.
    `whole`: with the columns that are null in rows of a kind."""
    groups = index.head.row_groups
    chosen = {*kept, *(i for i, group in enumerate(groups) if group.first_row < records)}
    for i in sorted(chosen):
        chunks, of_records = groups[i].chunks, groups[i].first_row < records
        at = 1 + i * len(chunks)
        sums = index.sums[at : at + len(chunks)] or (0,) * len(chunks)
        for (name, (offset, length)), crc in zip(chunks.items(), sums, strict=True):
            if name in needed and (whole or (name in ps.RECORD_COLUMNS) == of_records):
                yield offset, offset + length, crc


def _joined(parts: Iterable[Part]) -> Pairs:
    joined: list[tuple[int, int]] = []
    for start, end, _ in parts:
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return tuple(joined)
