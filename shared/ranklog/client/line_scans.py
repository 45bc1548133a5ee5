"""Rows of segments as Arrow tables: read in this process, or by scans elsewhere whose columns travelled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ranklog.client.search import Search, timed
from ranklog.layout import schema
from ranklog.merge.lines import FLOATS
from ranklog.model import query as q
from ranklog.plan.build import Plan
from ranklog.plan.tasks import Lines, Outcome, Task
from ranklog.scan.scatter import InProcess

_TEXTS = frozenset([schema.CALL_SITE, schema.FUNCTION, schema.LOGGER, schema.TEXT])


def read_scans(run: Search, expr: q.Expr, shape: Lines) -> Iterator[tuple[int, Any]]:
    """(segment's number, Arrow table of its rows) of each segment that may have matches. `shape` has
    columns, values and texts, no whole lines."""
    plan = run.plan(expr, shape)
    if isinstance(run.reader.invoker, InProcess):
        yield from _read_here(run, plan, shape)
        return
    for wave in run.outcomes(plan):
        for _, outcome in wave:
            yield from tables_of(outcome.columns)


def _read_here(run: Search, plan: Plan, shape: Lines) -> Iterator[tuple[int, Any]]:
    """Without lists in between: a table of one segment is in memory at a time."""
    from ranklog.scan.engine import shared_engine
    from ranklog.scan.evaluate import read_batches

    engine = shared_engine()
    for scan in plan.scans:
        task = Task(plan.expr, (scan,), shape, plan.near, run.reader.deadline_s)
        outcome = Outcome()
        with timed(run.report, "scan"):
            table = read_batches(task, scan, run.reader.store, engine, outcome, _whole)
        run.note(task, outcome)
        if table is not None and len(table):
            yield scan.number, table.combine_chunks()


def _whole(batches: Any) -> Any:
    return pa.Table.from_batches(list(batches), schema=batches.schema)


def tables_of(columns: Mapping[str, Sequence[Any]]) -> Iterator[tuple[int, Any]]:
    """An outcome's columns, segment by segment."""
    if not columns.get("segment"):
        return
    segments = np.array(columns["segment"])
    table = pa.table({name: _array(name, columns[name]) for name in columns if name != "segment"})
    for number in np.unique(segments).tolist():
        yield number, table.filter(pa.array(segments == number)).combine_chunks()


def _array(name: str, values: Sequence[Any]) -> Any:
    if name.startswith("value:"):
        plain = [FLOATS[v] if isinstance(v, str) else v for v in values]
        return pa.array(plain, pa.float64())
    return pa.array(values, pa.string() if _is_text(name) else pa.int64())


def _is_text(name: str) -> bool:
    return name in _TEXTS or name.startswith("text:")
