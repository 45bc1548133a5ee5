"""The order of a segment's records and points.

Shapes: n chosen records, v values of theirs. Everything is linear: series are small integers, sorted
by radix; only the records, of which there are few, are sorted by comparing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranklog.layout import schema
from ranklog.layout.point_rows import PointRows, ranges_to_places
from ranklog.layout.rows import I32, I64
from ranklog.model.frame import STREAM_RANK


@dataclass(frozen=True, slots=True)
class PointOrder:
    """`records` I64[n]: indices into the batch's records, in the order of their rows. Of each point in
    its order: `value` I64[v] into the batch's values, `rec` I32[v] its record's row, `key` I32[v]
    its series in the batch."""

    records: I64
    value: I64
    rec: I32
    key: I32


def order_points(rows: PointRows, chosen: I64) -> PointOrder:
    """Records by (their first series, rank, iteration, stream, seq): so those of one series stand
    together. Points by (series, rank, iteration, seq)."""
    rank, iteration = effective_rank(rows)[chosen], rows.iteration[chosen]
    stream, seq, size = rows.stream[chosen], rows.seq[chosen], rows.size[chosen]
    leading = _leading(rows, chosen)
    records = chosen[np.lexsort((seq, stream, iteration, rank, leading))]
    place = np.empty(len(rows), np.int32)
    place[records] = np.arange(len(records), dtype=np.int32)
    # points in the order of (rank, iteration, stream, seq), whichever series; then by series
    by_moment = chosen[np.lexsort((seq, stream, iteration, rank))]
    size = rows.size[by_moment]
    value = ranges_to_places(rows.first[by_moment], size)
    key = rows.key[value]
    order = radix_order(key, len(rows.series_name))
    rec = np.repeat(place[by_moment], size)
    return PointOrder(records, value[order], rec[order], key[order])


def effective_rank(rows: PointRows) -> I32:
    """The rank of each record, its stream's where it has none of its own; NO_RANK for no rank."""
    own = np.array(
        [schema.NO_RANK if s.rank is None else s.rank for s in rows.streams] or [0], np.int32
    )
    return np.where(rows.rank == STREAM_RANK, own[rows.stream], rows.rank)


def _leading(rows: PointRows, chosen: I64) -> I32:
    """The first series of each record, -1 for a record without values."""
    if not len(rows.key):
        return np.full(len(chosen), -1, np.int32)
    at = np.minimum(rows.first[chosen], len(rows.key) - 1)
    return np.where(rows.size[chosen] > 0, rows.key[at], -1).astype(np.int32)


def radix_order(keys: I32, count: int) -> I64:
    """A stable argsort of keys below `count`: two passes over 16 bits each, where one is not enough."""
    if count <= 1 << 16:
        return np.argsort(keys.astype(np.uint16), kind="stable")
    low = np.argsort((keys & 0xFFFF).astype(np.uint16), kind="stable")
    high = (keys[low] >> 16).astype(np.uint16)
    return low[np.argsort(high, kind="stable")]
