"""From loaded indexes of points to scans of what might hold a match. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ranklog.errors import Corrupt
from ranklog.layout.index import SegmentIndex
from ranklog.model import query as q
from ranklog.model.frame import KIND_POINT
from ranklog.model.index import StreamEntry
from ranklog.plan.near import NearKeys
from ranklog.plan.overlap import is_covered
from ranklog.plan.point_prune import SegmentPoints
from ranklog.plan.point_scan import scan_points
from ranklog.plan.point_terms import (
    PointResolver,
    PreparedPoints,
    prepare_points,
)
from ranklog.plan.scope import StreamTerms
from ranklog.plan.tasks import (
    LeafExpr,
    NearRows,
    Points,
    SegmentScan,
)
from ranklog.plan.values import Regexes


@dataclass(slots=True)
class PointPlan:
    """What to scan, and what was left out. `failed`: indexes that contradict themselves."""

    expr: LeafExpr
    shape: Points
    scans: list[SegmentScan] = field(default_factory=list)
    near: tuple[NearRows, ...] = ()
    segments_listed: int = 0
    segments_pruned: int = 0
    row_groups_total: int = 0
    row_groups_pruned: int = 0
    failed: list[dict[str, str]] = field(default_factory=list)


def plan_points(
    expr: q.Expr,
    shape: Points,
    indexes: Mapping[int, SegmentIndex],
    skips: Mapping[int, Sequence[tuple[int, int, int]]],
    regexes: Regexes,
    *,
    entries: Sequence[StreamEntry] | None = None,
    full_scan: bool = False,
) -> PointPlan:
    """Scans of every segment of points that might hold a match. Raises BadQuery.

    `entries`: streams of lines as well, that say which ranks a host has; None: those of the points.
    """
    prepared = prepare_points(expr)
    points = {n: index for n, index in indexes.items() if index.head.kind == KIND_POINT}
    if entries is None:
        entries = [entry for index in points.values() for entry in index.head.streams]
    keys = NearKeys(prepared.near, entries)
    planner = _Planner(
        PointPlan(prepared.expr, shape),
        prepared,
        PointResolver(prepared, regexes, StreamTerms(regexes)),
        keys,
        full_scan,
    )
    for number, index in points.items():
        if index.head.segment is None:
            continue
        try:
            planner.add(number, index, tuple(skips.get(number, ())))
        except Corrupt as error:
            planner.plan.failed.append({"segment": index.key, "reason": error.message})
    planner.plan.near = keys.rows()
    return planner.plan


@dataclass(frozen=True, slots=True)
class _Planner:
    """Adds segments to a plan, one by one."""

    plan: PointPlan
    prepared: PreparedPoints
    resolver: PointResolver
    keys: NearKeys
    full_scan: bool

    def add(self, number: int, index: SegmentIndex, skip: tuple[tuple[int, int, int], ...]) -> None:
        """Raises Corrupt where sections of the index contradict each other."""
        plan = self.plan
        facts = SegmentPoints(index, self.resolver.fill(index))
        groups = facts.point_groups
        plan.segments_listed += 1
        plan.row_groups_total += len(groups)
        rows, certain = facts.everything, False
        if skip and is_covered(index.head.streams, skip):
            rows = ()
        elif not self.full_scan:
            rows, certain = facts.prune(plan.expr)
        if not rows:
            plan.segments_pruned += 1
            plan.row_groups_pruned += len(groups)
            return
        kept = facts.groups_of(rows)
        plan.row_groups_pruned += len(groups) - len(kept)
        scan = scan_points(
            number, index, facts, rows, kept, plan.expr, plan.shape, certain=certain, skip=skip
        )
        plan.scans.append(replace(scan, **self._near(index)))

    def _near(self, index: SegmentIndex) -> dict[str, Any]:
        entries = index.head.streams
        told: dict[str, Any] = {"ranks": tuple(entry.stream.rank for entry in entries)}
        if self.prepared.near:
            told["keys"] = self.keys.of_streams(entries)
            told["hosts"] = self.keys.hosts(entries)
        return told
