"""Segments of points back to records and values: the inverse of `layout.point_segment`.

Shapes: n records and v values of all segments, one segment after the other; values record by record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from ranklog.compact.lines import number_column
from ranklog.compact.streams import Described, Hidden, Streams
from ranklog.layout import point_schema as ps
from ranklog.layout.point_index import SeriesTable
from ranklog.layout.point_rows import F64, PointRows, SummaryRows
from ranklog.layout.rows import I32, I64
from ranklog.model.frame import NO_ITERATION, STREAM_RANK, SUMMARY_PARTS

_RECORD_NUMBERS = {
    ps.SEQ: (np.int64, 0),
    ps.TS: (np.int64, 0),
    ps.ITERATION: (np.int64, NO_ITERATION),
    ps.RANK: (np.int32, STREAM_RANK),
}


@dataclass(slots=True)
class _Part:
    """One segment. Values stand record by record; `summary` are their places."""

    stream: I32
    numbers: dict[str, npt.NDArray[Any]]
    context: list[str | None]
    size: I64
    series: list[tuple[str, str]]
    key: I64
    values: F64
    missing: npt.NDArray[np.bool_]
    summary: I64
    flags: npt.NDArray[np.uint16]
    counts: I64
    parts: F64
    binary: tuple[Any, Any]


def read_points(
    indexes: Sequence[Described], segments: Sequence[bytes | None], hidden: Hidden
) -> tuple[PointRows, Streams]:
    """Records of the segments, in the order of the indexes; None where an index has only notes."""
    streams = Streams()
    parts = []
    for index, data in zip(indexes, segments, strict=True):
        places = streams.add(index.head, hidden)
        if data is not None:
            table = pq.read_table(pa.BufferReader(data), use_threads=False)
            parts.append(_part(table, index.series, places))
            streams.hold(index.series.records)
    return _rows(parts, streams), streams


def _part(table: Any, series: SeriesTable, places: I32) -> _Part:
    records, points = table.slice(0, series.records), table.slice(series.records)
    rec = number_column(points, ps.REC, np.int64, 0)
    order = np.argsort(rec, kind="stable")  # within a record by series, as they stood
    points = points.take(pa.array(order))
    context = number_column(records, ps.CONTEXT, np.int64, -1)
    is_summary = _valid(points, ps.COUNTS[0])
    values, missing = _values(points, is_summary)
    at = np.flatnonzero(is_summary)
    summaries = points.take(pa.array(at))
    names = zip(series.name, series.dim, strict=True)
    return _Part(
        stream=places[number_column(records, ps.STREAM, np.int32, 0)],
        numbers={n: number_column(records, n, *how) for n, how in _RECORD_NUMBERS.items()},
        context=[None if c < 0 else series.contexts[c] for c in context.tolist()],
        size=np.bincount(rec, minlength=series.records),
        series=[(series.names[name], series.dims[dim]) for name, dim in names],
        key=number_column(points, ps.SID, np.int64, 0),
        values=values,
        missing=missing,
        summary=at,
        flags=_flags(summaries),
        counts=_matrix(summaries, ps.COUNTS, np.int64),
        parts=_matrix(summaries, ps.NUMBERS, np.float64),
        binary=(_binary(summaries, ps.QUANTILES), _binary(summaries, ps.HISTOGRAM)),
    )


def _valid(table: Any, name: str) -> npt.NDArray[np.bool_]:
    if name not in table.column_names:
        return np.zeros(len(table), np.bool_)
    found: npt.NDArray[np.bool_] = (
        table.column(name).combine_chunks().is_valid().to_numpy(zero_copy_only=False)
    )
    return found


def _values(points: Any, is_summary: npt.NDArray[np.bool_]) -> tuple[F64, npt.NDArray[np.bool_]]:
    """Doubles to their last bit, NaN where there is none; and which were not measured."""
    exact, whole = _valid(points, ps.DIGITS), _valid(points, ps.VALUE)
    values = np.full(len(points), np.nan)
    if whole.any():
        column = points.column(ps.VALUE).combine_chunks()
        values[whole] = column.drop_null().to_numpy(zero_copy_only=False)
    digits = number_column(points, ps.DIGITS, np.int64, 0)[exact]
    scale = number_column(points, ps.SCALE, np.int64, 0)[exact]
    values[exact] = digits / (10.0 ** np.arange(ps.SCALE_MAX + 1))[scale]
    return values, ~(exact | whole | is_summary)


def _flags(summaries: Any) -> npt.NDArray[np.uint16]:
    """A bit for each part that a summary has."""
    found = np.zeros(len(summaries), np.uint16)
    for bit, part in enumerate(SUMMARY_PARTS):
        found |= _valid(summaries, f"s_{part}").astype(np.uint16) << np.uint16(bit)
    return found


def _matrix(summaries: Any, names: Sequence[str], dtype: Any) -> npt.NDArray[Any]:
    columns = []
    for name in names:
        values = np.zeros(len(summaries), dtype)
        there = _valid(summaries, name)
        if there.any():
            column = summaries.column(name).combine_chunks()
            values[there] = column.drop_null().to_numpy(zero_copy_only=False)
        columns.append(values)
    return np.stack(columns, axis=1)


def _binary(summaries: Any, name: str) -> Any:
    if name not in summaries.column_names:
        return pa.array([b""] * len(summaries), pa.binary())
    return summaries.column(name).combine_chunks().cast(pa.binary()).fill_null(b"")


# --- all segments -------------------------------------------------------------------------------
def _rows(parts: Sequence[_Part], streams: Streams) -> PointRows:
    """One table of series and one of contexts for all."""
    series = sorted({one for part in parts for one in part.series})
    place = {one: i for i, one in enumerate(series)}
    names = sorted({name for name, _ in series})
    dims = sorted({dim for _, dim in series})
    name_place = {name: i for i, name in enumerate(names)}
    dim_place = {dim: i for i, dim in enumerate(dims)}
    contexts = sorted({text for part in parts for text in part.context if text is not None})
    context_place = {text: i + 1 for i, text in enumerate(contexts)}
    size = _joined([part.size for part in parts], np.int64)
    keys = [np.array([place[one] for one in part.series], np.int64)[part.key] for part in parts]
    missing = _joined([part.missing for part in parts], np.bool_)
    return PointRows(
        streams=streams.streams,
        stream_ids=streams.ids,
        stream=_joined([part.stream for part in parts], np.int32),
        **{
            name: _joined([p.numbers[name] for p in parts], how[0])
            for name, how in _RECORD_NUMBERS.items()
        },
        context=np.array(
            [0 if t is None else context_place[t] for part in parts for t in part.context], np.int32
        ),
        contexts=tuple(contexts),
        first=np.cumsum(size) - size,
        size=size,
        key=_joined(keys, np.int32),
        values=_joined([part.values for part in parts], np.float64),
        missing=missing if missing.any() else None,
        summaries=_summaries(parts),
        names=tuple(names),
        dims=tuple(dims),
        series_name=np.array([name_place[name] for name, _ in series], np.int32),
        series_dims=np.array([dim_place[dim] for _, dim in series], np.int32),
    )


def _joined(found: Sequence[npt.NDArray[Any]], dtype: Any) -> npt.NDArray[Any]:
    return np.concatenate(found).astype(dtype, copy=False) if found else np.empty(0, dtype)


def _summaries(parts: Sequence[_Part]) -> SummaryRows:
    sizes = [len(part.values) for part in parts]
    firsts = (np.cumsum(sizes) - sizes).tolist() if parts else []
    shifted = [part.summary + first for part, first in zip(parts, firsts, strict=True)]
    quantiles, histograms = (
        pa.concat_arrays([part.binary[i] for part in parts]) if parts else pa.array([], pa.binary())
        for i in (0, 1)
    )
    return SummaryRows(
        at=_joined(shifted, np.int64),
        flags=_joined([part.flags for part in parts], np.uint16),
        counts=_joined([part.counts.ravel() for part in parts], np.int64).reshape(-1, 3),
        numbers=_joined([part.parts.ravel() for part in parts], np.float64).reshape(-1, 5),
        quantiles=quantiles,
        histograms=histograms,
    )
