"""One segment of a plan of points: which columns are needed, which bytes hold them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ranklog.layout import point_schema as ps
from ranklog.layout.index import SegmentIndex
from ranklog.model import query as q
from ranklog.plan.point_prune import BOUNDED, SegmentPoints
from ranklog.plan.point_terms import VALUE, any_term
from ranklog.plan.segments import row_ranges
from ranklog.plan.sums import Part, pack_sums
from ranklog.plan.tasks import (
    InContexts,
    InSeries,
    InStreams,
    LeafExpr,
    Pairs,
    Points,
    RankIs,
    SegmentScan,
)

# Row ranges of a scan; beyond it the gaps are read as well, and the terms decide.
_ROW_RANGES_MAX = 256


def scan_points(
    number: int,
    index: SegmentIndex,
    facts: SegmentPoints,
    rows: Pairs,
    kept: Sequence[int],
    expr: LeafExpr,
    shape: Points,
    *,
    certain: bool,
    skip: tuple[tuple[int, int, int], ...] = (),
) -> SegmentScan:
    """The scan of one segment: `rows` of it, which lie in the row groups `kept`."""
    head = index.head
    segment = head.segment
    assert segment is not None, "an index without a segment has no rows to scan"
    there = set(head.row_groups[0].chunks) if head.row_groups else set()
    if len(rows) > _ROW_RANGES_MAX:
        rows, certain = row_ranges([head.row_groups[i] for i in kept]), False
    needed = needed_columns(q.Everything() if certain else expr, shape)
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
    rows, kept = facts.everything, facts.point_groups
    shape = Points(columns)
    scan = scan_points(number, index, facts, rows, kept, q.Everything(), shape, certain=True)
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
        yield BOUNDED[expr.key]


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
