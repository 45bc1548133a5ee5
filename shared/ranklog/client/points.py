"""Points as one Arrow table: what matches in the segments in scope, each record once, in no order.

Shapes: a row is one value of one record. `SCHEMA` has the columns; a reader names those it wants.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from ranklog.client.answer import Tabular
from ranklog.client.point_columns import SCANNED, SCHEMA, name_points, scanned_array
from ranklog.client.reader import Reader
from ranklog.client.search import Search, begin, timed
from ranklog.errors import BadInput
from ranklog.model import query as q
from ranklog.model.answer import Completeness, Report
from ranklog.plan.pack import pack
from ranklog.plan.point_plan import PointPlan, plan_points
from ranklog.plan.tasks import Points, PointTask

COLUMNS = tuple(SCHEMA.names)


@dataclass(slots=True)
class PointAnswer(Tabular):
    """A pyarrow table of `SCHEMA`'s columns that were asked for, and how complete it is."""

    table: Any
    completeness: Completeness = field(default_factory=Completeness)
    report: Report = field(default_factory=Report)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def to_arrow(self) -> Any:
        return self.table


def search_points(
    reader: Reader, query: q.Query, columns: Sequence[str] | None = None
) -> PointAnswer:
    """Every point that a query matches. Raises BadQuery, BadInput."""
    run = begin(reader, query, points=True)
    table = read_points(run, run.expr(), columns)
    return PointAnswer(table, run.completeness(), run.report)


def read_points(run: Search, expr: q.Expr, columns: Sequence[str] | None = None) -> pa.Table:
    """The points of `run` that match `expr`, which has its restriction in it and its joins answered
    (`run.expr()`, or `all_of([*run.scope.restriction(), …])`).

    `run` was begun with `points=True`. What could not be read is in `run.failed`, and so in
    `run.completeness()`. Raises BadQuery for what can't be asked of points, BadInput for a column that
    there is not.
    """
    wanted = _checked(columns)
    parts = list(point_tables(run, expr, wanted))
    with timed(run.report, "merge"):
        if not parts:
            return pa.schema([SCHEMA.field(name) for name in wanted]).empty_table()
        return pa.concat_tables(parts).unify_dictionaries()


def point_tables(run: Search, expr: q.Expr, columns: Sequence[str]) -> Iterator[pa.Table]:
    """`read_points` segment by segment, as they come."""
    plan = plan_of(run, expr, columns)
    packed = pack(plan.scans, concurrency=run.reader.concurrency)
    tasks = [PointTask(plan.expr, scans, plan.shape, plan.near) for scans in packed]
    outcomes = iter(run.reader.run(tasks, run.ends_s))
    for task in tasks:
        with timed(run.report, "scan"):
            outcome = next(outcomes)
        run.note(task, outcome)
        found = [*outcome.tables.items(), *_from_lists(outcome.columns, plan.shape.columns)]
        for number, table in found:
            if table.num_rows:
                with timed(run.report, "merge"):
                    named = name_points(run.scope.points[number], table, columns)
                yield named


def plan_of(run: Search, expr: q.Expr, columns: Sequence[str]) -> PointPlan:
    """Prune; counts go into the report."""
    shape = Points(tuple(dict.fromkeys(n for name in columns for n in SCANNED[name])))
    with timed(run.report, "plan"):
        plan = plan_points(
            expr,
            shape,
            run.scope.points,
            run.scope.skips,
            run.reader.regexes,
            entries=tuple(run.scope.entries()),
            full_scan=run.query.full_scan,
        )
    run.failed += plan.failed
    report = run.report
    report.segments_listed += plan.segments_listed
    report.segments_pruned += plan.segments_pruned
    report.row_groups_total += plan.row_groups_total
    report.row_groups_pruned += plan.row_groups_pruned
    return plan


def _checked(columns: Sequence[str] | None) -> tuple[str, ...]:
    wanted = COLUMNS if columns is None else tuple(dict.fromkeys(columns))
    for name in wanted:
        if name not in COLUMNS:
            raise BadInput(f"points have no column {name!r}", hint=", ".join(COLUMNS))
    return wanted


# --- outcomes that travelled ----------------------------------------------------------------------
def _from_lists(columns: dict[str, list[Any]], names: Sequence[str]) -> list[tuple[int, pa.Table]]:
    """Columns of lists as tables by segment."""
    if not columns.get("segment"):
        return []
    numbers = np.array(columns["segment"])
    table = pa.table({name: scanned_array(name, columns[name]) for name in names})
    return [
        (number, table.filter(pa.array(numbers == number)))
        for number in np.unique(numbers).tolist()
    ]
