"""Matching rows as seq ranges by stream and event hour, from columns and never row by row.

Shapes: n rows that match; `stream` I64[n] numbers of streams, `seq` I64[n], `hour` I64[n].
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from ranklog.client.line_scans import read_scans
from ranklog.client.line_table import is_null, numbers
from ranklog.client.search import Search
from ranklog.errors import Corrupt
from ranklog.layout import keys, schema
from ranklog.layout import point_schema as ps
from ranklog.layout.index import SegmentIndex
from ranklog.limits import HOUR_NS
from ranklog.plan.tasks import Lines
from ranklog.plan.tree import all_of
from ranklog.store.protocol import Store

I64 = npt.NDArray[np.int64]
_SHAPE = Lines(limit=None, whole=False, columns=(schema.GROUP,))


def find_ranges(
    run: Search, *, groups: bool = False
) -> Iterator[tuple[str, int, list[tuple[int, int]]]]:
    """(stream id, hour, half-open seq ranges) of what matches, by stream and hour. `groups`: and of the
    rest of the groups of what matches."""
    names: dict[str, int] = {}
    found = _read(run, run.expr(), names)
    if groups and found is not None:
        found = _with_groups(run, found, names)
    if found is None:
        return
    stream, seq, hour, _ = found
    yield from _by_stream_and_hour(list(names), stream, seq, hour)


def find_records(
    store: Store, index: SegmentIndex, until_ns: int
) -> Iterator[tuple[str, int, list[tuple[int, int]]]]:
    """The same of all records of points of a segment before a time. Raises Corrupt where it is not what was
    committed, and what the store raises."""
    segment = index.head.segment
    if segment is None:
        return
    data = store.get(segment.key)
    if not keys.segment_is_named(data, segment.key):
        raise Corrupt(f"damaged segment: {segment.key}")
    columns = [ps.STREAM, ps.SEQ, ps.TS]
    table = pq.read_table(pa.BufferReader(data), columns=columns, use_threads=False)
    table = table.slice(0, index.series.records)
    stream, seq, ts = (numbers(table, name) for name in columns)
    old = ts < until_ns
    ids = [entry.stream_id for entry in index.head.streams]
    yield from _by_stream_and_hour(ids, stream[old], seq[old], ts[old] // HOUR_NS)


def _by_stream_and_hour(
    ids: list[str], stream: I64, seq: I64, hour: I64
) -> Iterator[tuple[str, int, list[tuple[int, int]]]]:
    if not len(seq):
        return
    order = np.lexsort((seq, hour, stream))
    stream, seq, hour = stream[order], seq[order], hour[order]
    place = np.ones(len(seq), np.bool_)
    place[1:] = (stream[1:] != stream[:-1]) | (hour[1:] != hour[:-1])
    breaks = place.copy()
    breaks[1:] |= seq[1:] > seq[:-1] + 1  # the same row again breaks nothing
    starts = np.flatnonzero(breaks)
    ends = seq[np.append(starts[1:], len(seq)) - 1] + 1
    places = np.flatnonzero(place)
    edges = np.append(np.searchsorted(starts, places), len(starts)).tolist()
    lows, highs = seq[starts].tolist(), ends.tolist()
    for i, at in enumerate(places.tolist()):
        a, b = edges[i], edges[i + 1]
        pairs = list(zip(lows[a:b], highs[a:b], strict=True))
        yield ids[stream[at]], int(hour[at]), pairs


def _read(run: Search, expr: Any, names: dict[str, int]) -> tuple[I64, I64, I64, I64] | None:
    """Stream, seq, hour and group (-1: none) of what matches."""
    parts = []
    for number, table in read_scans(run, expr, _SHAPE):
        entries = run.scope.indexes[number].head.streams
        places = [names.setdefault(entry.stream_id, len(names)) for entry in entries]
        stream = np.array(places, np.int64)[numbers(table, schema.STREAM)]
        column = table.column(schema.GROUP)
        group = np.where(is_null(column), -1, numbers(table, schema.GROUP))
        hour = numbers(table, schema.TS) // HOUR_NS
        parts.append((stream, numbers(table, schema.SEQ), hour, group))
    if not parts:
        return None
    stream, seq, hour, group = (np.concatenate(column) for column in zip(*parts, strict=True))
    return stream, seq, hour, group


def _with_groups(
    run: Search, found: tuple[I64, I64, I64, I64], names: dict[str, int]
) -> tuple[I64, I64, I64, I64]:
    """And every row in scope that is of a group of one of them."""
    stream, _, _, group = found
    wanted = np.unique(np.stack([stream[group >= 0], group[group >= 0]], axis=1), axis=0)
    everything = _read(run, all_of(run.scope.restriction()), names)
    if everything is None or not len(wanted):
        return found
    size = int(max(everything[3].max(), wanted[:, 1].max())) + 1
    inside = (everything[3] >= 0) & np.isin(
        everything[0] * size + everything[3], wanted[:, 0] * size + wanted[:, 1]
    )
    merged = [np.concatenate([a, b[inside]]) for a, b in zip(found, everything, strict=True)]
    return merged[0], merged[1], merged[2], merged[3]
