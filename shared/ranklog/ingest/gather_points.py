"""Frames of points of one tenant to columns: names and dimensions of all frames in one table.

Shapes: n records and v values over all frames, in the order of the frames. Loops are over frames and
their distinct names, dimensions and contexts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ranklog.ingest.gather import StreamTable, column, notes_of, streams_of
from ranklog.ingest.records import Received
from ranklog.layout import schema
from ranklog.layout.build import StreamNotes
from ranklog.layout.point_rows import F64, PointRows, SummaryRows, ranges_to_places
from ranklog.layout.rows import I32, I64
from ranklog.limits import TIME_FUTURE_NS_MAX, TIME_PAST_NS_MAX
from ranklog.model.frame import PointColumns
from ranklog.model.point import canonical_json, context_values

# Pairs of name and dimensions up to which a table finds the distinct ones; beyond it, a sort.
_PAIRS_MAX = 1 << 24


@dataclass(frozen=True, slots=True)
class GatheredPoints:
    """Points of a tenant, and what its frames say of streams, by place in `rows.streams`."""

    rows: PointRows
    notes: dict[int, StreamNotes]


def gather_points(received: Sequence[Received]) -> GatheredPoints:
    """Points of the frames of one tenant."""
    frames = [item.frame for item in received]
    points = [frame.points for frame in frames if frame.points is not None]
    table = StreamTable()
    named = [(table.place(entry.stream), entry) for frame in frames for entry in frame.streams]
    stream, seq = streams_of(frames, named)
    contexts, context = _contexts(points)
    size, key, series = _values(points)
    first = np.cumsum(size) - size
    rows = PointRows(
        streams=tuple(table.streams),
        stream_ids=table.ids,
        stream=stream,
        seq=seq,
        ts=column(frames, "ts", "<i8"),
        iteration=column(frames, "iteration", "<i8"),
        rank=column(frames, "rank", "<i4"),
        context=context,
        contexts=contexts,
        first=first,
        size=size,
        key=key,
        values=np.concatenate([np.frombuffer(one.values, "<f8") for one in points]),
        missing=_missing(points),
        summaries=_summaries(points),
        names=series.names,
        dims=series.dims,
        series_name=series.name,
        series_dims=series.dim,
    )
    counts = np.array([frame.rows for frame in frames], np.int64)
    arrival = np.repeat(np.array([item.arrival_ns for item in received], np.int64), counts)
    return GatheredPoints(_file_by_arrival(rows, arrival), notes_of(frames, named))


def texts_of(lengths: bytes, data: bytes) -> list[str]:
    """Texts of a frame: UTF-8 that was checked."""
    edges = np.cumsum(np.frombuffer(lengths, "<u4").astype(np.int64)).tolist()
    starts = [0, *edges[:-1]]
    return [data[start:end].decode() for start, end in zip(starts, edges, strict=False)]


# --- names and dimensions -----------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Series:
    """Distinct series of the batch, sorted by (name, dimensions)."""

    names: tuple[str, ...]
    dims: tuple[str, ...]
    name: I32
    dim: I32


def _values(points: Sequence[PointColumns]) -> tuple[I64, I32, _Series]:
    """How many values each record has, each value's series, and the series."""
    names, name_of = _sorted_texts([texts_of(one.name_length, one.names) for one in points])
    dims, dims_of = _sorted_texts([texts_of(one.dims_length, one.dims) for one in points])
    sizes, pairs = [], []
    for one, own_names, own_dims in zip(points, name_of, dims_of, strict=True):
        set_size = np.frombuffer(one.set_size, "<u4").astype(np.int64)
        of_set = np.frombuffer(one.set, "<u4")
        size = set_size[of_set]
        dim = np.repeat(own_dims[np.frombuffer(one.set_dims, "<u4")], set_size)
        pair = own_names[np.frombuffer(one.set_name, "<u4")] * len(dims) + dim
        at = ranges_to_places((np.cumsum(set_size) - set_size)[of_set], size)
        sizes.append(size)
        pairs.append(pair[at])
    whole = np.concatenate(pairs)
    distinct, key = _factorize(whole, len(names) * len(dims))
    width = max(len(dims), 1)
    series = _Series(
        tuple(names),
        tuple(dims),
        (distinct // width).astype(np.int32),
        (distinct % width).astype(np.int32),
    )
    return np.concatenate(sizes), key, series


def _sorted_texts(frames: Sequence[Sequence[str]]) -> tuple[list[str], list[I64]]:
    """Distinct texts of all frames, sorted, and the places of each frame's."""
    distinct = sorted({text for texts in frames for text in texts})
    place = {text: i for i, text in enumerate(distinct)}
    return distinct, [np.array([place[text] for text in texts], np.int64) for texts in frames]


def _factorize(pairs: I64, count: int) -> tuple[I64, I32]:
    """Distinct numbers, ascending, and each one's place among them."""
    if count > _PAIRS_MAX:
        distinct, places = np.unique(pairs, return_inverse=True)
        return distinct, places.astype(np.int32)
    there = np.zeros(max(count, 1), np.bool_)
    there[pairs] = True
    place = np.cumsum(there, dtype=np.int32) - 1
    return np.flatnonzero(there), place[pairs].astype(np.int32)


# --- contexts -----------------------------------------------------------------------------------
def _contexts(points: Sequence[PointColumns]) -> tuple[tuple[str, ...], I32]:
    """Distinct contexts, and 1 + the place of each record's (0: none)."""
    found = [texts_of(one.context_length, one.contexts) for one in points]
    distinct, places = _sorted_texts(found)
    columns = [
        np.append(0, own + 1).astype(np.int32)[np.frombuffer(one.context, "<u4")]
        for one, own in zip(points, places, strict=True)
    ]
    return tuple(distinct), np.concatenate(columns)


# --- values that are none, and summaries ----------------------------------------------------------
def _shifted(points: Sequence[PointColumns], name: str) -> I64:
    """Places among all values."""
    sizes = np.array([len(one.values) // 8 for one in points], np.int64)
    firsts = (np.cumsum(sizes) - sizes).tolist()
    return np.concatenate(
        [
            np.frombuffer(getattr(one, name), "<u4").astype(np.int64) + first
            for one, first in zip(points, firsts, strict=True)
        ]
    )


def _missing(points: Sequence[PointColumns]) -> npt.NDArray[np.bool_] | None:
    at = _shifted(points, "missing")
    if not len(at):
        return None
    found = np.zeros(sum(len(one.values) for one in points) // 8, np.bool_)
    found[at] = True
    return found


def _summaries(points: Sequence[PointColumns]) -> SummaryRows:
    def joined(name: str, dtype: str) -> npt.NDArray[Any]:
        return np.concatenate([np.frombuffer(getattr(one, name), dtype) for one in points])

    bins = joined("bin_size", "<u4").astype(np.int64)
    numbers: F64 = joined("summary_numbers", "<f8")
    return SummaryRows(
        at=_shifted(points, "summary"),
        flags=joined("summary_flags", "<u2"),
        counts=joined("summary_counts", "<i8").reshape(-1, 3),
        numbers=numbers.reshape(-1, 5),
        quantiles=_binary(
            16 * joined("quantile_size", "<u4").astype(np.int64), points, "quantiles"
        ),
        histograms=_binary(np.where(bins, 16 * bins + 8, 0), points, "histograms"),
    )


def _binary(lengths: I64, points: Sequence[PointColumns], name: str) -> Any:
    data = b"".join([getattr(one, name) for one in points])
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(lengths), buffers)


# --- wild times ---------------------------------------------------------------------------------
def _file_by_arrival(rows: PointRows, arrival: I64) -> PointRows:
    """Records with a time that can't be get their arrival's, and keep the claim in their context."""
    imported = np.array([s.certified == "import" for s in rows.streams] or [False])
    past = (rows.ts < arrival - TIME_PAST_NS_MAX) & ~imported[rows.stream]
    wild = (rows.ts < 0) | (rows.ts > arrival + TIME_FUTURE_NS_MAX) | past
    if not wild.any():
        return rows
    contexts = list(rows.contexts)
    places = {text: i for i, text in enumerate(contexts)}
    context = rows.context.copy()
    for at in np.flatnonzero(wild).tolist():
        values = context_values(contexts[context[at] - 1]) if context[at] else {}
        text = canonical_json({**values, schema.TS_CLAIMED_KEY: int(rows.ts[at])})
        if text not in places:
            places[text] = len(contexts)
            contexts.append(text)
        context[at] = places[text] + 1
    return replace(
        rows, ts=np.where(wild, arrival, rows.ts), context=context, contexts=tuple(contexts)
    )
