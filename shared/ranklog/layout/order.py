"""The order of a segment's rows, and where its row groups begin.

Shapes: n rows of the segment; g row groups, `starts` I64[g] ascending from 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ranklog.layout.rows import I32, I64, Rows
from ranklog.limits import RARE_ROWS_MAX, ROW_GROUP_ROWS, TIME_BUCKET_ROWS
from ranklog.model.frame import STREAM_RANK


@dataclass(frozen=True, slots=True)
class RowOrder:
    """`permutation` I64[n]: which of the chosen rows stands where."""

    permutation: I64
    starts: I64


def order_rows(rows: Rows, chosen: I64, tids: I32) -> RowOrder:
    """An order of `chosen` (positions; `tids` of them): by time bucket, template, time; ties as given.

    Inside a template, by time is smaller than by (stream, seq): ranks that say the same at the same
    time stand together, and times take a third fewer bytes. But lines of a labelled file, whose
    times are often coarse or another line's, are a twentieth smaller by own rank, then time.

    Where there is more than one row group, the rarest templates stand last, behind all buckets, in a
    row group of their own: who looks for what was seldom said unpacks a few hundred lines.
    """
    ts, rank = rows.ts[chosen], rows.rank[chosen]
    order = np.argsort(ts, kind="stable")  # sorted runs of streams are merged
    if (rank != STREAM_RANK).any():
        shared = np.count_nonzero(np.diff(ts[order]) == 0)
        order = np.lexsort((ts, rank) if 2 * shared >= len(ts) else (rank, ts))
    order = order[np.argsort(tids[order].astype(np.uint16), kind="stable")]  # a radix sort
    rare = _rare_templates(tids)[tids[order]]
    last, order = order[rare], order[~rare]
    buckets = -(-len(order) // TIME_BUCKET_ROWS)
    if buckets > 1:
        low = int(ts.min())
        width = (int(ts.max()) - low) // buckets + 1
        bucket = ((ts - low) // width).astype(np.uint16)
        order = order[np.argsort(bucket[order], kind="stable")]
    starts = np.arange(0, len(order), ROW_GROUP_ROWS)
    if len(last):
        starts = np.append(starts, len(order))
    return RowOrder(np.concatenate((order, last)), starts)


def _rare_templates(tids: I32) -> npt.NDArray[np.bool_]:
    """Per template whether it is one of the rarest, which share a row group of RARE_ROWS_MAX rows."""
    counts = np.bincount(tids)
    rare = np.zeros(len(counts), np.bool_)
    if len(tids) > ROW_GROUP_ROWS:
        by_count = np.argsort(counts, kind="stable")
        rare[by_count] = np.cumsum(counts[by_count]) <= RARE_ROWS_MAX
    return rare
