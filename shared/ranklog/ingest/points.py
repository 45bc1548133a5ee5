"""Frames of points to segments and indexes of kind "point", as lines go to theirs."""

from __future__ import annotations

from ranklog.delete.retention import Policy
from ranklog.ingest.gather_points import gather_points
from ranklog.ingest.hours import Part, distinct_rows, split_hours
from ranklog.ingest.parts import Batch, frames_beside
from ranklog.ingest.told import ByKind
from ranklog.layout.build import Beside, BuiltSegment
from ranklog.layout.point_build import build_point_notes, build_points
from ranklog.model.frame import KIND_POINT


def ingest_points(batch: Batch, points: ByKind, policy: Policy) -> None:
    """Commit the records of a tenant's frames of points, and what is told of their streams."""
    frames = points.frames
    gathered = gather_points([*frames, *points.told])
    rows = gathered.rows
    order = distinct_rows(rows, frames)
    batch.report.repeated += len(rows) - len(order)
    order = batch.kept(rows, order, gathered.notes, policy, frames)

    def build(part: Part, beside: Beside) -> BuiltSegment:
        return build_points(rows, part.chosen, beside)

    parts = split_hours(rows, order, gathered.notes)
    for part, beside in zip(parts, frames_beside(rows, parts, frames), strict=True):
        batch.commit(KIND_POINT, rows, part, beside, build, build_point_notes)
        batch.report.points += int(rows.size[part.chosen].sum())
