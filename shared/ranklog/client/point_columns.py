"""Columns of points as readers get them, from what a scan found in one segment and what its index names.

Shapes: p points of one segment; `sid`, `stream` and `context` are places in its tables.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ranklog.layout import point_schema as ps
from ranklog.layout import schema
from ranklog.layout.index import SegmentIndex
from ranklog.model.stream import Stream

_NAME = pa.dictionary(pa.int32(), pa.string())
SUMMARY = pa.struct(
    [
        ("count", pa.int64()),
        ("min", pa.float64()),
        ("max", pa.float64()),
        ("mean", pa.float64()),
        ("std", pa.float64()),
        ("norm", pa.float64()),
        ("nan", pa.int64()),
        ("inf", pa.int64()),
        ("quantiles", pa.map_(pa.string(), pa.float64())),
        (
            "histogram",
            pa.struct([("edges", pa.list_(pa.float64())), ("counts", pa.list_(pa.float64()))]),
        ),
    ]
)
SCHEMA = pa.schema(
    [
        ("run_id", _NAME),
        ("attempt", pa.int32()),
        ("rank", pa.int32()),
        ("host", _NAME),
        ("stream", _NAME),
        ("seq", pa.int64()),
        ("ts_ns", pa.int64()),
        ("iteration", pa.int64()),
        ("series", _NAME),
        ("dims", _NAME),
        ("value", pa.float64()),
        ("summary", SUMMARY),
        ("metadata", _NAME),
    ]
)
# What a scan must return for each column.
SCANNED: dict[str, tuple[str, ...]] = {
    "run_id": (ps.STREAM,),
    "attempt": (ps.STREAM,),
    "rank": (ps.STREAM, ps.RANK),
    "host": (ps.STREAM,),
    "stream": (ps.STREAM,),
    "seq": (ps.SEQ,),
    "ts_ns": (ps.TS,),
    "iteration": (ps.ITERATION,),
    "series": (ps.SID,),
    "dims": (ps.SID,),
    "value": (ps.VALUE,),
    "summary": ps.SUMMARY_COLUMNS,
    "metadata": (ps.CONTEXT,),
}
_TYPES = {
    ps.SID: pa.int32(),
    ps.STREAM: pa.int32(),
    ps.RANK: pa.int32(),
    ps.CONTEXT: pa.int32(),
    ps.QUANTILES: pa.binary(),
    ps.HISTOGRAM: pa.binary(),
} | dict.fromkeys((ps.SEQ, ps.TS, ps.ITERATION, *ps.COUNTS), pa.int64())
_FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def name_points(index: SegmentIndex, table: pa.Table, columns: Sequence[str]) -> pa.Table:
    """The columns of a segment's points that a reader asked for."""
    segment = _Segment(index, table)
    return pa.table(
        [segment.column(name) for name in columns],
        schema=pa.schema([SCHEMA.field(name) for name in columns]),
    )


def scanned_array(name: str, values: list[Any]) -> pa.Array:
    """A scan's column that travelled as JSON."""
    if name in (ps.QUANTILES, ps.HISTOGRAM):
        return pa.array([None if v is None else base64.b64decode(v) for v in values], pa.binary())
    if name not in _TYPES:
        plain = [_FLOATS[v] if isinstance(v, str) else v for v in values]
        return pa.array(plain, pa.float64())
    return pa.array(values, _TYPES[name])


class _Segment:
    """One segment's points, column by column."""

    def __init__(self, index: SegmentIndex, table: pa.Table) -> None:
        self._table = table
        self._streams = [entry.stream for entry in index.head.streams]
        self._ids = [entry.stream_id for entry in index.head.streams]
        self._series = index.series

    def column(self, name: str) -> Any:
        if name == "series":
            return self._of_series(self._series.name, self._series.names)
        if name == "dims":
            return self._of_series(self._series.dim, self._series.dims)
        if name == "metadata":
            return _named(self._numbers(ps.CONTEXT), self._series.contexts)
        if name == "summary":
            return self._summary()
        if name in ("seq", "ts_ns", "iteration", "value"):
            column = {"ts_ns": ps.TS}.get(name, name)
            return self._arrow(column).cast(SCHEMA.field(name).type)
        return self._of_streams(name)

    def _arrow(self, name: str) -> Any:
        return self._table[name].combine_chunks()

    def _numbers(self, name: str) -> npt.NDArray[np.int64]:
        """A column of places, -1 where there is none."""
        found = self._arrow(name)
        if found.null_count:
            found = found.fill_null(-1)
        return np.asarray(found.to_numpy(zero_copy_only=False)).astype(np.int64)

    def _of_series(self, places: Sequence[int], texts: Sequence[str]) -> Any:
        at = np.frombuffer(np.asarray(places, np.uint32), np.uint32).astype(np.int64)
        return _named(at[self._numbers(ps.SID)], texts)

    def _of_streams(self, name: str) -> Any:
        stream = self._numbers(ps.STREAM)
        if name == "stream":
            return _named(stream, self._ids)
        if name == "attempt":
            of_stream = np.array([one.attempt for one in self._streams], np.int32)
            return pa.array(of_stream[stream])
        if name == "rank":
            return self._rank(stream)
        read: Callable[[Stream], str | None] = (
            (lambda one: one.run_id) if name == "run_id" else (lambda one: one.host)
        )
        texts = [read(one) for one in self._streams]
        distinct = sorted({text for text in texts if text is not None})
        at = np.array([-1 if text is None else distinct.index(text) for text in texts], np.int64)
        return _named(at[stream], distinct)

    def _rank(self, stream: npt.NDArray[np.int64]) -> Any:
        """The record's own, else its stream's."""
        none = schema.NO_RANK
        own = np.array([none if s.rank is None else s.rank for s in self._streams], np.int32)
        override = self._arrow(ps.RANK)
        rank = own[stream]
        if override.null_count < len(override):
            there = np.asarray(override.is_valid().to_numpy(zero_copy_only=False))
            rank = np.where(there, override.fill_null(none).to_numpy(), rank).astype(np.int32)
        return pa.array(rank, mask=rank == none)

    # --- summaries ------------------------------------------------------------------------------
    def _summary(self) -> Any:
        count = self._arrow(ps.COUNTS[0])
        mask = count.is_null()
        parts = {"count": count, "nan": self._arrow(ps.COUNTS[1]), "inf": self._arrow(ps.COUNTS[2])}
        parts |= {name.removeprefix("s_"): self._arrow(name) for name in ps.NUMBERS}
        parts["quantiles"] = _quantiles(self._arrow(ps.QUANTILES))
        parts["histogram"] = _histograms(self._arrow(ps.HISTOGRAM))
        arrays = [parts[field.name] for field in SUMMARY]
        return pa.StructArray.from_arrays(arrays, fields=list(SUMMARY), mask=mask)


def _named(places: npt.NDArray[np.int64], texts: Sequence[str]) -> Any:
    """Texts by place, -1 is none; the dictionary holds those in use."""
    used = np.zeros(len(texts) + 1, np.bool_)
    used[places] = True  # -1 is the last
    used[-1] = False
    new = (np.cumsum(used) - 1).astype(np.int32)
    absent = places < 0
    codes = pa.array(new[places], mask=absent if absent.any() else None)
    kept = [texts[i] for i in np.flatnonzero(used).tolist()]
    return pa.DictionaryArray.from_arrays(codes, pa.array(kept, pa.string()))


def _doubles(column: Any) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Where each row's doubles begin (and the last end), and the doubles; nulls have none."""
    lengths = pc.binary_length(column).fill_null(0).to_numpy(zero_copy_only=False)
    edges = np.append(0, np.cumsum(lengths.astype(np.int64) // 8))
    whole = b"".join(v for v in column.drop_null().to_pylist())
    return edges, np.frombuffer(whole, "<f8")


def _quantiles(column: Any) -> Any:
    """(share, value) pairs as a map of the share's text."""
    edges, doubles = _doubles(column)
    shares, values = doubles[::2], doubles[1::2]
    distinct, at = np.unique(shares, return_inverse=True)
    texts = pa.array([f"{share:.12g}" for share in distinct.tolist()], pa.string())
    keys = texts.take(pa.array(at)) if len(at) else pa.array([], pa.string())
    offsets = pa.array((edges // 2).astype(np.int32))
    found = pa.MapArray.from_arrays(_with_nulls(offsets, column), keys, pa.array(values))
    return found.cast(SUMMARY.field("quantiles").type)


def _histograms(column: Any) -> Any:
    """Edges, then counts, as two lists."""
    edges, doubles = _doubles(column)
    sizes = np.diff(edges)
    bins = sizes // 2
    starts = edges[:-1]
    of_edges = np.append(0, np.cumsum(np.where(sizes, bins + 1, 0)))
    of_counts = np.append(0, np.cumsum(bins))
    is_edge = np.zeros(len(doubles), np.bool_)
    for start, count in zip(starts.tolist(), bins.tolist(), strict=True):
        is_edge[start : start + count + 1] = count > 0
    lists = [
        pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(values))
        for offsets, values in ((of_edges, doubles[is_edge]), (of_counts, doubles[~is_edge]))
    ]
    kind = SUMMARY.field("histogram").type
    return pa.StructArray.from_arrays(lists, fields=list(kind), mask=column.is_null())


def _with_nulls(offsets: Any, column: Any) -> Any:
    """Offsets of which those of null rows are null: so Arrow marks a list as absent."""
    if not column.null_count:
        return offsets
    absent = np.append(column.is_null().to_numpy(zero_copy_only=False), False)
    return pa.array(offsets.to_numpy(), mask=absent)
