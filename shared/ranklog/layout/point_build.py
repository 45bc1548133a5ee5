"""One segment of points and its index from chosen records: the write path's last step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ranklog.layout import point_schema as ps
from ranklog.layout import schema
from ranklog.layout.build import Beside, BuiltSegment, stream_table
from ranklog.layout.index import INDEX_VERSION, encode_index
from ranklog.layout.point_index import SeriesTable
from ranklog.layout.point_order import PointOrder, effective_rank, order_points
from ranklog.layout.point_rows import PointRows
from ranklog.layout.point_segment import WrittenPoints, write_points
from ranklog.layout.row_sums import sums_of_points
from ranklog.layout.rows import I32, I64
from ranklog.model.frame import KIND_POINT, NO_ITERATION
from ranklog.model.index import Bounds, IndexHead, RowGroup, SegmentRef, StreamEntry

_NO_BLOOM = (0, 0)


def build_points(rows: PointRows, chosen: I64, beside: Beside) -> BuiltSegment:
    """The segment of the records `chosen` (in (stream, seq) order; at least one)."""
    order = order_points(rows, chosen)
    starts = np.flatnonzero(np.diff(order.key, prepend=-1))
    table, sid = _series(rows, order, starts)
    entries, places = _stream_table(rows, chosen, beside)
    contexts, context = _contexts(rows, order.records)
    table = replace(table, contexts=contexts)
    written = write_points(rows, order, sid, starts, table, places, context)
    row_sums = sums_of_points(rows, chosen, places, len(entries))
    ts = rows.ts[chosen]
    head = IndexHead(
        version=INDEX_VERSION,
        kind=KIND_POINT,
        segment=None,
        rows=len(order.value),
        min_ts=int(ts.min()),
        max_ts=int(ts.max()),
        text_bytes=8 * len(order.value),
        streams=entries,
        row_groups=_row_groups(rows, order, written, places),
        columns=(),
        frames=beside.frames,
        contested=beside.contested,
        replaces=beside.replaces,
        envelopes=None,
    )
    segment = written.segment

    def index(ref: SegmentRef) -> bytes:
        return encode_index(
            replace(head, segment=ref),
            footer_bytes=segment.footer_bytes,
            sums=segment.sums,
            row_sums=row_sums,
            series=table,
        )

    return BuiltSegment(segment, head.min_ts, head.max_ts, index)


def build_point_notes(rows: PointRows, beside: Beside, bounds: tuple[int, int]) -> bytes:
    """An index without a segment: what frames said of streams that have no record in this part."""
    entries, _ = _stream_table(rows, np.empty(0, np.int64), beside)
    head = IndexHead(INDEX_VERSION, KIND_POINT, None, 0, *bounds, 0, entries, (), ())
    said = {"frames": beside.frames, "contested": beside.contested, "replaces": beside.replaces}
    return encode_index(replace(head, **said))  # type: ignore[arg-type]


def _stream_table(
    rows: PointRows, chosen: I64, beside: Beside
) -> tuple[tuple[StreamEntry, ...], npt.NDArray[np.int32]]:
    """As of lines; `lines` of an entry are its points."""
    entries, places = stream_table(rows, chosen, beside.notes)
    return tuple(replace(entry, lines=entry.text_bytes // 8) for entry in entries), places


def _series(rows: PointRows, order: PointOrder, starts: I64) -> tuple[SeriesTable, I32]:
    """Series that have a point here, and each point's place among them."""
    keys = order.key[starts]
    counts = np.diff(np.append(starts, len(order.key)))
    names, name = _used(rows.names, rows.series_name[keys])
    dims, dim = _used(rows.dims, rows.series_dims[keys])
    records = len(order.records)
    table = SeriesTable(names, dims, (), name.tolist(), dim.tolist(), counts.tolist(), records)
    return table, np.repeat(np.arange(len(starts), dtype=np.int32), counts)


def _used(texts: Sequence[str], places: I32) -> tuple[tuple[str, ...], I32]:
    """The texts that are named, in their order, and the places among them."""
    used = np.zeros(len(texts), np.bool_)
    used[places] = True
    new = np.cumsum(used) - 1
    return tuple(texts[i] for i in np.flatnonzero(used).tolist()), new[places].astype(np.int32)


def _contexts(rows: PointRows, records: I64) -> tuple[tuple[str, ...], I32]:
    """Contexts of the records, and each record's, -1 for none."""
    at = rows.context[records] - 1
    texts, places = _used(rows.contexts, at[at >= 0])
    found = np.full(len(at), -1, np.int32)
    found[at >= 0] = places
    return texts, found


# --- row groups ---------------------------------------------------------------------------------
def _row_groups(
    rows: PointRows, order: PointOrder, written: WrittenPoints, places: I32
) -> tuple[RowGroup, ...]:
    """Bounds and streams of the rows; points have those of their records."""
    records, total = len(order.records), len(order.records) + len(order.value)
    stream = places[rows.stream[order.records]]
    numbers = _numbers(rows, order.records)
    values = rows.values[order.value]
    groups = []
    for number, (first, end) in enumerate(pairwise([*written.starts, total])):
        told: I64
        of_points = first >= records
        if of_points:
            part = slice(first - records, end - records)
            at = order.rec[part]
            seen = np.zeros(records, np.bool_)
            seen[at] = True
            told = np.flatnonzero(seen)
        else:
            told = np.arange(first, end, dtype=np.int64)
        bounds = {name: _bounds(column[told]) for name, column in numbers.items()}
        if of_points:
            bounds[ps.VALUE] = _value_bounds(values[part])
        groups.append(
            RowGroup(
                first_row=first,
                rows=end - first,
                chunks=written.segment.chunks[number],
                bounds=bounds,
                streams=frozenset(np.flatnonzero(np.bincount(stream[told])).tolist()),
                runs=frozenset(),
                hex_runs=False,
                bloom=_NO_BLOOM,
            )
        )
    return tuple(groups)


def _numbers(rows: PointRows, records: I64) -> dict[str, npt.NDArray[np.int64]]:
    rank = effective_rank(rows)[records].astype(np.int64)
    return {
        ps.TS: rows.ts[records],
        ps.SEQ: rows.seq[records],
        ps.ITERATION: rows.iteration[records],
        ps.RANK: np.where(rank == schema.NO_RANK, NO_ITERATION, rank),
    }


def _bounds(values: npt.NDArray[np.int64]) -> Bounds:
    low = int(values.min())
    if low != NO_ITERATION:
        return Bounds(low, int(values.max()), False)
    present = values[values != NO_ITERATION]
    if not len(present):
        return Bounds(None, None, True)
    return Bounds(int(present.min()), int(present.max()), True)


def _value_bounds(values: npt.NDArray[np.float64]) -> Bounds:
    """Of what was measured: those that were not, and summaries, count as absent and as NaN."""
    low, high = float(values.min()), float(values.max())
    if low == low:
        return Bounds(low, high, True)
    present = values[~np.isnan(values)]
    if not len(present):
        return Bounds(None, None, True, True)
    return Bounds(float(present.min()), float(present.max()), True, True)
