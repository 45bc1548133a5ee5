"""Points in order to one segment: columns, Parquet bytes; and where each column chunk lies in them.

Shapes: n records, v points; row groups of records, then of points. Encodings are measured
(docs/storage-format.md).
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import msgpack
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from ranklog.layout import point_schema as ps
from ranklog.layout import schema
from ranklog.layout.footer import slim_footer
from ranklog.layout.keys import hash_segment
from ranklog.layout.point_index import SeriesTable, series_to_map
from ranklog.layout.point_order import PointOrder
from ranklog.layout.point_rows import PointRows, SummaryRows
from ranklog.layout.point_values import Decimals, as_digits
from ranklog.layout.rows import I32, I64
from ranklog.layout.segment import SegmentBytes, chunks_of, streams_json, sums_of
from ranklog.limits import POINT_GROUP_ROWS, RECORD_GROUP_ROWS, ROW_GROUP_ROWS
from ranklog.model.frame import KIND_POINT, NO_ITERATION, STREAM_RANK, SUMMARY_PARTS

SPLIT, DELTA = "BYTE_STREAM_SPLIT", "DELTA_BINARY_PACKED"
_ENCODINGS = {
    ps.STREAM: DELTA,
    ps.SEQ: DELTA,
    ps.TS: SPLIT,
    ps.ITERATION: DELTA,
    ps.RANK: DELTA,
    ps.CONTEXT: DELTA,
    ps.SID: DELTA,
    ps.REC: DELTA,
    ps.DIGITS: SPLIT,
    ps.SCALE: DELTA,
    ps.VALUE: SPLIT,
} | dict.fromkeys((*ps.COUNTS, *ps.NUMBERS), SPLIT)
_LEVEL = 3
_REQUIRED = (ps.STREAM, ps.SEQ, ps.TS, ps.SID, ps.REC)


@dataclass(frozen=True, slots=True)
class WrittenPoints:
    """The segment, and the first row of each of its row groups; the first `records` rows are records."""

    segment: SegmentBytes
    starts: tuple[int, ...]
    decimals: Decimals


def write_points(
    rows: PointRows,
    order: PointOrder,
    sid: I32,
    starts: I64,
    table: SeriesTable,
    stream_places: I32,
    context: I32,
) -> WrittenPoints:
    """Parquet of records and points in their order. `sid` I32[v] and `starts` I64[r]: each point's
    series in the segment, where each begins; `context` I32[n] of the records, -1 none."""
    records, points = len(order.records), len(order.value)
    values = rows.values[order.value]
    decimals = as_digits(values, starts)
    columns = _records(rows, order.records, stream_places, context)
    columns |= _points(rows, order, sid, values, decimals)
    columns = {name: one for name, one in columns.items() if _is_needed(name, one)}
    edges = [
        *range(0, records, RECORD_GROUP_ROWS),
        *range(records, records + points, POINT_GROUP_ROWS),
    ]
    used = np.flatnonzero(stream_places >= 0)
    streams = sorted(used.tolist(), key=lambda s: int(stream_places[s]))
    metadata = {
        schema.VERSION_METADATA: str(schema.SEGMENT_VERSION),
        ps.KIND_METADATA: KIND_POINT,
        schema.STREAMS_METADATA: streams_json([rows.streams[s] for s in streams]),
        ps.SERIES_METADATA: series_text(table),
    }
    segment = _write(columns, [*edges, records + points], records, metadata)
    return WrittenPoints(segment, tuple(edges), decimals)


def _is_needed(name: str, column: Any) -> bool:
    """A column without a value is left out."""
    return name in _REQUIRED or column.null_count < len(column)


def series_text(table: SeriesTable) -> str:
    """The table for readers of the bare segment: base64 of zstd of msgpack (docs/storage-format.md)."""
    packed = msgpack.packb(series_to_map(table), unicode_errors="surrogatepass")
    return base64.b64encode(zstandard.ZstdCompressor(level=9).compress(packed)).decode()


def _records(rows: PointRows, records: I64, places: I32, context: I32) -> dict[str, Any]:
    rank, iteration = rows.rank[records], rows.iteration[records]
    return {
        ps.STREAM: pa.array(places[rows.stream[records]]),
        ps.SEQ: pa.array(rows.seq[records]),
        ps.TS: pa.array(rows.ts[records]),
        ps.ITERATION: pa.array(iteration, mask=iteration == NO_ITERATION),
        ps.RANK: pa.array(rank, mask=rank == STREAM_RANK),
        ps.CONTEXT: pa.array(context, mask=context < 0),
    }


def _points(
    rows: PointRows,
    order: PointOrder,
    sid: I32,
    values: npt.NDArray[np.float64],
    decimals: Decimals,
) -> dict[str, Any]:
    absent = _absent(rows)
    exact = decimals.exact if absent is None else decimals.exact & ~absent[order.value]
    whole = ~exact if absent is None else ~exact & ~absent[order.value]
    # half the bytes to write and to read, where all of a segment's fit
    digits = decimals.digits
    small = len(digits) == 0 or int(np.abs(digits).max()) < 2**31
    columns = {
        ps.SID: pa.array(sid),
        ps.REC: pa.array(order.rec),
        ps.DIGITS: pa.array(digits.astype(np.int32) if small else digits, mask=_mask(~exact)),
        ps.SCALE: pa.array(decimals.scale, mask=_mask(~exact)),
        ps.VALUE: pa.array(values, mask=_mask(~whole)),
    }
    if len(rows.summaries.at):
        columns |= _summaries(rows.summaries, order.value, len(rows.values))
    return columns


def _mask(absent: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_] | None:
    return absent if absent.any() else None


def _absent(rows: PointRows) -> npt.NDArray[np.bool_] | None:
    """Values that are not measured, or summaries."""
    if rows.missing is None and not len(rows.summaries.at):
        return None
    found = np.zeros(len(rows.values), np.bool_) if rows.missing is None else rows.missing.copy()
    found[rows.summaries.at] = True
    return found


def _summaries(found: SummaryRows, value: I64, count: int) -> dict[str, Any]:
    place = np.full(count, -1, np.int64)
    place[found.at] = np.arange(len(found.at))
    at = place[value]
    there = at >= 0
    columns: dict[str, Any] = {}
    for i, name in enumerate(ps.COUNTS):
        columns[name] = pa.array(found.counts[:, i][at], mask=~there)
    for i, name in enumerate(ps.NUMBERS):
        has = (found.flags >> SUMMARY_PARTS.index(name[2:]) & 1).astype(np.bool_)
        columns[name] = pa.array(found.numbers[:, i][at], mask=~(there & has[at]))
    for name, values in ((ps.QUANTILES, found.quantiles), (ps.HISTOGRAM, found.histograms)):
        has = (found.flags >> SUMMARY_PARTS.index(name[2:]) & 1).astype(np.bool_)
        columns[name] = values.take(pa.array(at, mask=~(there & has[at])))
    return columns


# --- Parquet ------------------------------------------------------------------------------------
def _write(
    columns: dict[str, Any], edges: list[int], records: int, metadata: dict[str, str]
) -> SegmentBytes:
    names = list(columns)
    kinds = pa.schema([pa.field(name, columns[name].type) for name in names])
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, kinds, **_options(names)) as writer:
        for group in _groups(columns, kinds, edges, records):
            writer.write_table(group, row_group_size=len(group))
        writer.add_key_value_metadata(metadata)
    buffer = sink.getvalue()
    data = slim_footer(memoryview(buffer))
    size = int.from_bytes(data[-8:-4], "little") + 8
    chunks = chunks_of(buffer, names)
    return SegmentBytes(data, hash_segment(data), size, chunks, sums_of(data, size, chunks))


def _options(names: list[str]) -> dict[str, Any]:
    return {
        "compression": "zstd",
        "compression_level": _LEVEL,
        "use_dictionary": False,
        "column_encoding": {name: _ENCODINGS[name] for name in names if name in _ENCODINGS},
        "write_statistics": [name for name in (ps.SID, ps.TS, ps.ITERATION) if name in names],
        "data_page_size": 4 * 1024 * 1024,
        "max_rows_per_page": ROW_GROUP_ROWS,
        "store_schema": False,
    }


def _groups(columns: dict[str, Any], kinds: Any, edges: list[int], records: int) -> Iterator[Any]:
    """Row groups: columns of the other kind of rows are null."""
    empty: dict[tuple[Any, int], Any] = {}
    for first, end in pairwise(edges):
        arrays = []
        for field in kinds:
            of_record = field.name in ps.RECORD_COLUMNS
            if of_record == (first < records):
                shift = 0 if of_record else records
                arrays.append(columns[field.name].slice(first - shift, end - first))
            else:
                key = (field.type, end - first)
                if key not in empty:
                    empty[key] = pa.nulls(end - first, field.type)
                arrays.append(empty[key])
        yield pa.table(arrays, schema=kinds)
