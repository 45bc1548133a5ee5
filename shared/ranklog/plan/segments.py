"""One segment of a plan: what pruning left, which columns are needed, which bytes hold them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ranklog.layout import schema
from ranklog.layout.index import SegmentIndex
from ranklog.model import query as q
from ranklog.model.index import RowGroup
from ranklog.plan.sums import Part, pack_sums
from ranklog.plan.tables import tables_of
from ranklog.plan.tasks import (
    ALL,
    Groups,
    InStreams,
    InTemplates,
    LeafExpr,
    Lines,
    Pairs,
    RankIs,
    SegmentScan,
)

_ROW_RANGES_MAX = 48
_FIELD_COLUMNS = {
    "level": schema.LEVEL,
    "iteration": schema.ITERATION,
    "group": schema.GROUP,
    "time": schema.TS,
    "seq": schema.SEQ,
    "function": schema.FUNCTION,
    "logger": schema.LOGGER,
    "call_site": schema.CALL_SITE,
}


@dataclass(slots=True)
class Kept:
    """What is left of a segment: row groups by position, templates (None: all of them), and the same
    as exact row ranges where templates were left out. `certain`: every row that is left matches."""

    row_groups: Sequence[int]
    tids: Sequence[int] | None = None
    rows: Pairs | None = None
    certain: bool = False
    slots: tuple[Pairs, ...] = ()
    skip: Sequence[tuple[int, int, int]] = ()


def plan_scan(
    number: int, index: SegmentIndex, kept: Kept, expr: LeafExpr, shape: Lines | Groups
) -> SegmentScan:
    """The scan of one segment."""
    head, tables = index.head, tables_of(index)
    segment = head.segment
    assert segment is not None, "an index without a segment has no rows to scan"
    groups = [head.row_groups[i] for i in kept.row_groups]
    # few exact ranges say all; many would cost more than the templates they stand for
    exact = kept.rows is not None and len(kept.rows) <= _ROW_RANGES_MAX
    certain = kept.certain and (exact or kept.tids is None)
    needed = needed_columns(q.Everything() if certain else expr, shape, index)
    place = tuple(kept.row_groups)
    small, text, sums = tables.known(("bytes", place, needed), lambda: _bytes(index, place, needed))
    eager = _text_early(expr, shape)
    return SegmentScan(
        number=number,
        key=segment.key,
        length=segment.length,
        etag=segment.etag,
        footer=index.footer_bytes,
        min_ts=head.min_ts,
        max_ts=head.max_ts,
        columns=_optional_columns(index, needed),
        overflow=head.overflow,
        ranked=tables.ranked,
        rows=_rows(kept, groups, head.rows, exact=exact),
        tids=None if exact or kept.tids is None else tuple(kept.tids),
        certain=certain,
        slots=_widened(expr, kept.slots, len(head.streams), len(index.templates)),
        skip=tuple(kept.skip),
        order=tables.order,
        small=small,
        text=text if eager else (),
        late=() if eager else text,
        sums=sums,
        same=_same_of(index, place) if _is_whole(shape) else (),
    )


def _is_whole(shape: Lines | Groups) -> bool:
    return isinstance(shape, Lines) and shape.whole


def _same_of(index: SegmentIndex, row_groups: Sequence[int]) -> tuple[tuple[str, int | None], ...]:
    tables, described = tables_of(index), index.head.row_groups
    groups = [described[i] for i in row_groups]
    return tables.known(("same", row_groups), lambda: tuple(_same(groups, tables.ranked)))


def _same(groups: Sequence[RowGroup], ranked: bool) -> Iterator[tuple[str, int | None]]:
    """Columns of one value in all of these row groups, as far as bounds say it."""
    if not ranked:
        yield schema.RANK, None
    for name, first in groups[0].bounds.items():
        # those of rank are of the streams' as well; doubles would lose the sign of a zero
        if name == schema.RANK or first.has_nan or first.low != first.high:
            continue
        if first.low is not None and (first.has_null or not isinstance(first.low, int)):
            continue
        if all(group.bounds.get(name) == first for group in groups[1:]):
            yield name, first.low


def _widened(
    expr: LeafExpr, slots: tuple[Pairs, ...], streams: int, templates: int
) -> tuple[Pairs, ...]:
    """Sets that hold all of the segment as ALL: a scan need not look at the column."""
    if not slots:
        return slots
    found = list(slots)
    for slot, count in _slots_of(expr, streams, templates):
        if found[slot] == ((0, count),):
            found[slot] = ALL
    return tuple(found)


def _slots_of(expr: LeafExpr, streams: int, templates: int) -> Iterator[tuple[int, int]]:
    """Slots that a tree refers to, and how many members each could have."""
    if isinstance(expr, (q.And, q.Or)):
        for item in expr.items:
            yield from _slots_of(item, streams, templates)
    elif isinstance(expr, q.Not):
        yield from _slots_of(expr.item, streams, templates)
    elif isinstance(expr, (InStreams, RankIs)):
        yield expr.slot, streams
    elif isinstance(expr, InTemplates):
        yield expr.slot, templates


def _rows(kept: Kept, groups: Sequence[RowGroup], total: int, *, exact: bool) -> Pairs | None:
    """The row ranges to read, None where that is all of them."""
    ranges = kept.rows if exact and kept.rows is not None else row_ranges(groups)
    return None if ranges == ((0, total),) else tuple(ranges)


def row_ranges(groups: Iterable[RowGroup]) -> Pairs:
    """Row ranges of row groups, neighbours joined."""
    ranges: list[tuple[int, int]] = []
    for group in sorted(groups, key=lambda group: group.first_row):
        first, end = group.first_row, group.first_row + group.rows
        if ranges and ranges[-1][1] == first:
            ranges[-1] = (ranges[-1][0], end)
        else:
            ranges.append((first, end))
    return tuple(ranges)


def needed_columns(expr: LeafExpr, shape: Lines | Groups, index: SegmentIndex) -> frozenset[str]:
    """Parquet columns that the statement reads, metadata among them."""
    head, there = index.head, tables_of(index).columns
    if isinstance(shape, Lines) and shape.whole:
        return there
    columns = {schema.TID, schema.STREAM, schema.SEQ, *expr_columns(expr)}
    keys: list[str] = []
    if isinstance(shape, Lines):
        columns |= {schema.TS, schema.RANK, schema.ITERATION, *shape.columns}
        keys = [*shape.values, *shape.texts]
    else:
        columns |= {key.partition("/")[0] for key in shape.keys}
        columns |= {schema.TS, schema.TEXT} if shape.extent else set()
        keys = [key.removeprefix("meta:") for key in shape.keys if key.startswith("meta:")]
        columns |= {schema.ITERATION} if schema.ITERATION in shape.stats else set()
        keys += shape.stats
    columns |= {schema.metadata_column(t, key) for key in keys for t in schema.METADATA_TYPES}
    if any(column in head.overflow for column in columns):
        columns.add(schema.OVERFLOW)
    return frozenset(columns & there)


def expr_columns(expr: LeafExpr) -> Iterator[str]:
    """Parquet columns that a tree looks at."""
    if isinstance(expr, (q.And, q.Or)):
        for item in expr.items:
            yield from expr_columns(item)
    elif isinstance(expr, q.Not):
        yield from expr_columns(expr.item)
    elif isinstance(expr, (q.Contains, q.Matches)):
        yield schema.TEXT
    elif isinstance(expr, RankIs):
        yield schema.RANK
    elif isinstance(expr, q.NearSet):
        yield from (schema.RANK, schema.TS, schema.ITERATION)
    elif isinstance(expr, q.Field):
        if expr.key in _FIELD_COLUMNS:
            yield _FIELD_COLUMNS[expr.key]
        else:
            yield from (schema.metadata_column(t, expr.key) for t in schema.METADATA_TYPES)


def _optional_columns(index: SegmentIndex, needed: frozenset[str]) -> tuple[str, ...]:
    """Metadata columns of the segment in need, then those that not every segment has."""
    metadata = [name for name in index.head.columns if name in needed]
    return (*metadata, *(name for name in schema.OPTIONAL_COLUMNS if name in needed))


def _text_early(expr: LeafExpr, shape: Lines | Groups) -> bool:
    """Whether text is fetched with the small columns: it decides, or all of it is wanted."""
    if schema.TEXT in set(expr_columns(expr)):
        return True
    return isinstance(shape, Groups) or shape.limit is None


def _bytes(
    index: SegmentIndex, row_groups: Sequence[int], needed: frozenset[str]
) -> tuple[Pairs, Pairs, str]:
    """Byte ranges of the needed columns but text, and of text; their checksums."""
    small, text = _parts(index, row_groups, needed)
    sums = pack_sums(index.sums[0], (*small, *text)) if index.sums else ""
    return _joined(small), _joined(text), sums


def _parts(
    index: SegmentIndex, row_groups: Sequence[int], needed: frozenset[str]
) -> tuple[list[Part], list[Part]]:
    """Chunks of the needed columns but text, and those of text, with their checksums; ascending."""
    small: list[Part] = []
    text: list[Part] = []
    for i in row_groups:
        chunks = index.head.row_groups[i].chunks
        at = 1 + i * len(chunks)
        sums = index.sums[at : at + len(chunks)] or (0,) * len(chunks)
        for (name, (offset, length)), crc in zip(chunks.items(), sums, strict=True):
            if name in needed:
                part = (offset, offset + length, crc)
                (text if name == schema.TEXT else small).append(part)
    return sorted(small), sorted(text)


def _joined(parts: Iterable[Part]) -> Pairs:
    """Byte ranges of ascending parts; those that touch become one: they travel in the task."""
    joined: list[tuple[int, int]] = []
    for start, end, _ in parts:
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return tuple(joined)


def scan_bytes(scan: SegmentScan) -> int:
    """What the scan is expected to read."""
    return scan.footer + sum(end - start for start, end in (*scan.small, *scan.text))
