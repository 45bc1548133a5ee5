"""Points of a segment, read with DuckDB: the same meaning as scan/point_mask, as one statement.

SELECT <columns of the shape>
FROM (SELECT … FROM read_parquet(path) WHERE <rows>) AS p          -- points
JOIN (SELECT …, file_row_number AS row FROM read_parquet(path) WHERE <rows of records>) AS r
  ON p.rec = r.row
WHERE <the query's tree> AND <not what another segment answers>
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from ranklog.layout import point_schema as ps
from ranklog.layout import schema
from ranklog.model import query as q
from ranklog.plan.tasks import (
    InContexts,
    InSeries,
    InStreams,
    LeafExpr,
    Nothing,
    PointTask,
    RankIs,
    SegmentScan,
)
from ranklog.plan.values import number_values
from ranklog.scan.fields import in_ranges, numbers_sql, quoted
from ranklog.scan.sql import Parameters

_NUMERIC = {"iteration": ps.ITERATION, "time": ps.TS, "seq": ps.SEQ, "value": ps.VALUE}
_POWERS = ", ".join(f"1e{power}" for power in range(ps.SCALE_MAX + 1))
_TYPES = dict.fromkeys(ps.COUNTS, "BIGINT") | dict.fromkeys((ps.QUANTILES, ps.HISTOGRAM), "BLOB")
_TYPES |= {ps.RANK: "INTEGER", ps.CONTEXT: "INTEGER", ps.ITERATION: "BIGINT"}


def query_points(
    cursor: duckdb.DuckDBPyConnection, task: PointTask, segment: SegmentScan, path: str
) -> dict[str, list[Any]]:
    """Columns of the matching points as JSON has them, and `segment`: its number."""
    parameters = Parameters()
    sql = point_statement(task, segment, path, parameters)
    rows = cursor.execute(sql, parameters.values).fetchall()
    columns: dict[str, list[Any]] = {"segment": [segment.number] * len(rows)}
    for i, name in enumerate(task.shape.columns):
        columns[name] = _plain(name, [row[i] for row in rows])
    return columns


def point_statement(
    task: PointTask, segment: SegmentScan, path: str, parameters: Parameters
) -> str:
    """The SELECT; its columns are the shape's, in their order."""
    source = f"read_parquet({parameters.add(path)}, file_row_number=true)"
    points = [column_sql(name, segment.columns) for name in _of_points(task.shape.columns)]
    records = [_there(name, segment.columns) for name in ps.RECORD_COLUMNS]
    compiler = _Compiler(task, segment, parameters)
    where = ["true"] if segment.certain else [compiler.predicate(task.expr)]
    where += [
        f"NOT (stream = {stream} AND seq >= {first} AND seq < {end})"
        for stream, first, end in segment.skip
    ]
    rows = in_ranges("file_row_number", segment.rows) if segment.rows else "sid IS NOT NULL"
    shown = ", ".join(quoted(name) for name in task.shape.columns) or ps.SID
    return (
        f"SELECT {shown} FROM (SELECT {', '.join(points)} FROM {source} WHERE {rows}) AS p "
        f"JOIN (SELECT {', '.join(records)}, file_row_number AS row FROM {source} "
        f"WHERE file_row_number < {segment.records}) AS r ON p.rec = r.row "
        f"WHERE {' AND '.join(where)}"
    )


def _of_points(shown: Iterable[str]) -> list[str]:
    asked = [ps.SID, ps.REC, ps.VALUE]
    return asked + [name for name in shown if name not in (*asked, *ps.RECORD_COLUMNS)]


def column_sql(name: str, there: Sequence[str]) -> str:
    """A column of points; `value` is digits / 10^scale where it is stored so."""
    if name != ps.VALUE:
        return _there(name, there)
    parts = []
    if ps.DIGITS in there:
        parts.append(f"(CAST(digits AS DOUBLE) / ([{_POWERS}]::DOUBLE[])[scale + 1])")
    if ps.VALUE in there:
        parts.append("value")
    return f"coalesce({', '.join(parts) or 'NULL::DOUBLE'}) AS value"


def _there(name: str, there: Sequence[str]) -> str:
    """The column, or null where the segment has none (or nobody needs it)."""
    if name in there:
        return quoted(name)
    return f"NULL::{_TYPES.get(name, 'DOUBLE')} AS {quoted(name)}"


def _plain(name: str, values: list[Any]) -> list[Any]:
    """Values as JSON has them: NaN and infinities as text, bytes as base64."""
    if name in (ps.QUANTILES, ps.HISTOGRAM):
        return [None if v is None else base64.b64encode(v).decode() for v in values]
    if name == ps.VALUE or name in ps.NUMBERS:
        return [v if v is None or math.isfinite(v) else _name(v) for v in values]
    return values


def _name(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


@dataclass(slots=True)
class _Compiler:
    """`near`: near sets met so far, depth first."""

    task: PointTask
    segment: SegmentScan
    parameters: Parameters
    near: int = 0

    def predicate(self, expr: LeafExpr) -> str:
        """SQL that is true or false, never NULL."""
        if isinstance(expr, q.Everything):
            return "true"
        if isinstance(expr, Nothing):
            return "false"
        if isinstance(expr, (q.And, q.Or)):
            word = " AND " if isinstance(expr, q.And) else " OR "
            parts = [self.predicate(item) for item in expr.items]
            return f"({word.join(parts)})" if parts else str(isinstance(expr, q.And)).lower()
        if isinstance(expr, q.Not):
            return f"(NOT {self.predicate(expr.item)})"
        return f"coalesce({self._leaf(expr)}, false)"

    def _leaf(self, expr: LeafExpr) -> str:
        if isinstance(expr, (InSeries, InStreams, InContexts)):
            column = {InSeries: ps.SID, InStreams: ps.STREAM, InContexts: ps.CONTEXT}[type(expr)]
            return in_ranges(column, self.segment.slots[expr.slot])
        if isinstance(expr, RankIs):
            own = in_ranges(ps.STREAM, self.segment.slots[expr.slot])
            override = f"nullif({ps.RANK}, {schema.NO_RANK})"
            other = numbers_sql(override, expr.field.op, number_values(expr.field))
            return f"CASE WHEN {ps.RANK} IS NULL THEN {own} ELSE {other} END"
        if isinstance(expr, q.NearSet):
            self.near += 1
            return self._near(self.near - 1)
        assert isinstance(expr, q.Field), expr
        is_value = expr.key == "value"
        return numbers_sql(_NUMERIC[expr.key], expr.op, number_values(expr), is_float=is_value)

    def _near(self, number: int) -> str:
        """Whether some interval of the point's key and rank holds it."""
        near, at = self.task.near[number], f"[{ps.STREAM} + 1]"
        key = f"({self._list(self.segment.keys[number], 'INTEGER')}){at}"
        axis = ps.TS if near.axis == "time" else ps.ITERATION
        rank = "0"
        if near.by_rank:
            own = f"({self._list(self.segment.ranks, 'INTEGER')}){at}"
            host = f"({self._list(self.segment.hosts, 'INTEGER')}){at}"
            override = f"nullif({ps.RANK}, {schema.NO_RANK})"
            whole = f"CASE WHEN {ps.RANK} IS NULL THEN {own} ELSE {override} END"
            rank = f"coalesce({whole}, -2 - {host})"
        columns = ", ".join(
            f"unnest({self._list(values, kind)}) AS {name}"
            for name, kind, values in (
                ("near_key", "INTEGER", near.key),
                ("near_rank", "INTEGER", near.rank),
                ("low", "BIGINT", near.low),
                ("high", "BIGINT", near.high),
            )
        )
        return (
            f"EXISTS (SELECT 1 FROM (SELECT {columns}) AS n WHERE n.near_key = {key} "
            f"AND n.near_rank = {rank} AND {axis} >= n.low AND {axis} < n.high)"
        )

    def _list(self, values: Sequence[int | None], kind: str) -> str:
        return f"{self.parameters.add(list(values))}::{kind}[]"
