"""A query's tree over points in memory: the same meaning as scan/point_sql, in numpy.

Shapes: p points; a mask is bool[p]. Sets of a segment's streams, series and contexts are ranges of
places. A value that is absent makes a term false.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ranklog.layout import point_schema as ps
from ranklog.layout import schema
from ranklog.model import query as q
from ranklog.plan.tasks import (
    ALL,
    InContexts,
    InSeries,
    InStreams,
    LeafExpr,
    NearRows,
    Nothing,
    Pairs,
    PointTask,
    RankIs,
    SegmentScan,
)
from ranklog.plan.values import number_values
from ranklog.scan.numeric import Mask, Numbers, numbers_mask

Column: TypeAlias = "Callable[[str], Numbers]"
_NUMERIC = {"iteration": ps.ITERATION, "time": ps.TS, "seq": ps.SEQ, "value": ps.VALUE}


def point_mask(task: PointTask, segment: SegmentScan, points: int, column: Column) -> Mask:
    """Which points match; `column` gives a column by its name."""
    return _Evaluator(task, segment, points, column).mask(task.expr)


@dataclass(slots=True)
class _Evaluator:
    """`near`: near sets met so far, depth first."""

    task: PointTask
    segment: SegmentScan
    points: int
    column: Column
    near: int = 0

    def mask(self, expr: LeafExpr) -> Mask:
        if isinstance(expr, q.Everything):
            return np.ones(self.points, np.bool_)
        if isinstance(expr, Nothing):
            return np.zeros(self.points, np.bool_)
        if isinstance(expr, (q.And, q.Or)):
            both = isinstance(expr, q.And)
            found = np.full(self.points, both)
            for item in expr.items:
                mask = self.mask(item)
                found = found & mask if both else found | mask
            return found
        if isinstance(expr, q.Not):
            return ~self.mask(expr.item)
        return self._leaf(expr)

    def _leaf(self, expr: LeafExpr) -> Mask:
        if isinstance(expr, InSeries):
            return self._among(ps.SID, self.segment.slots[expr.slot])
        if isinstance(expr, InStreams):
            return self._among(ps.STREAM, self.segment.slots[expr.slot])
        if isinstance(expr, InContexts):
            return self._among(ps.CONTEXT, self.segment.slots[expr.slot])
        if isinstance(expr, RankIs):
            return self._rank(expr)
        if isinstance(expr, q.NearSet):
            self.near += 1
            return self._near(self.task.near[self.near - 1], expr, self.near - 1)
        assert isinstance(expr, q.Field), expr
        return numbers_mask(
            self.column(_NUMERIC[expr.key]),
            expr.op,
            number_values(expr),
            is_float=expr.key == "value",
        )

    def _among(self, name: str, ranges: Pairs) -> Mask:
        if not ranges:
            return np.zeros(self.points, np.bool_)
        if ranges == ALL:
            return np.ones(self.points, np.bool_)
        found = self.column(name)
        flags = np.zeros(ranges[-1][1] + 1, np.bool_)
        for low, high in ranges:
            flags[low:high] = True
        mask: Mask = flags[np.minimum(found.values, len(flags) - 1)]
        return mask if found.present is None else mask & found.present

    def _rank(self, expr: RankIs) -> Mask:
        own = self._among(ps.STREAM, self.segment.slots[expr.slot])
        rank = self.column(ps.RANK)
        if rank.present is not None and not rank.present.any():
            return own
        there = np.ones(self.points, np.bool_) if rank.present is None else rank.present
        override = Numbers(rank.values, there & (rank.values != schema.NO_RANK))
        other = numbers_mask(override, expr.field.op, number_values(expr.field))
        return np.where(there, other, own)

    # --- near -----------------------------------------------------------------------------------
    def _near(self, rows: NearRows, expr: q.NearSet, number: int) -> Mask:
        """Whether the interval that begins last at or before the point holds it."""
        at = self.column(ps.TS if expr.axis == "time" else ps.ITERATION)
        stream = self.column(ps.STREAM).values
        key = np.array(self.segment.keys[number], np.int64)[stream]
        rank = self._near_rank(stream) if rows.by_rank else np.zeros(self.points, np.int64)
        found = np.zeros(self.points, np.bool_)
        if not rows.key:
            return found
        sets = _intervals(rows)
        groups, place = np.unique(np.stack([key, rank]), axis=1, return_inverse=True)
        for i, pair in enumerate(groups.T.tolist()):
            if tuple(pair) not in sets:
                continue
            low, high = sets[tuple(pair)]
            chosen = np.flatnonzero(place.reshape(-1) == i)
            values = at.values[chosen]
            before = np.searchsorted(low, values, "right") - 1
            found[chosen] = (before >= 0) & (values < high[np.maximum(before, 0)])
        return found if at.present is None else found & at.present

    def _near_rank(self, stream: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """The point's rank; -2 - its host where it has none."""
        none = -2 - np.array(self.segment.hosts, np.int64)[stream]
        own_ranks = [schema.NO_RANK if r is None else r for r in self.segment.ranks]
        own = np.array(own_ranks, np.int64)[stream]
        rank = self.column(ps.RANK)
        there = np.ones(self.points, np.bool_) if rank.present is None else rank.present
        whole = np.where(there, rank.values, own)
        return np.where(whole == schema.NO_RANK, none, whole)


def _intervals(
    rows: NearRows,
) -> dict[tuple[int, int], tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Intervals by (key, rank), ascending."""
    found: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for key, rank, low, high in zip(rows.key, rows.rank, rows.low, rows.high, strict=True):
        found.setdefault((key, rank), []).append((low, high))
    ordered = {pair: sorted(spans) for pair, spans in found.items()}
    return {
        pair: (np.array([a for a, _ in spans]), np.array([b for _, b in spans]))
        for pair, spans in ordered.items()
    }
