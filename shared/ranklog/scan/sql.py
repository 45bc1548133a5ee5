"""Compile a query's tree to SQL over a segment's columns, with named parameters.

Every predicate of a line is true or false. SQL's NULL stands for false where only truth counts (the
conjuncts of WHERE, which DuckDB then pushes into the Parquet reader), and is made false where a NOT
would turn it over.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ranklog.layout import schema
from ranklog.model import query as q
from ranklog.plan.tasks import (
    InStreams,
    InTemplates,
    LeafExpr,
    Nothing,
    RankIs,
    SegmentScan,
)
from ranklog.plan.values import number_values
from ranklog.scan.fields import (
    call_site_sql,
    in_ranges,
    metadata_sql,
    numbers_sql,
    regex,
    texts_sql,
)

_NUMERIC_COLUMNS = {
    "level": schema.LEVEL,
    "iteration": schema.ITERATION,
    "group": schema.GROUP,
    "time": schema.TS,
    "seq": schema.SEQ,
}
_TEXT_COLUMNS = {"function": schema.FUNCTION, "logger": schema.LOGGER}


@dataclass(slots=True)
class Parameters:
    """Named values of one statement."""

    values: dict[str, Any] = field(default_factory=dict)

    def add(self, value: Any) -> str:
        """The placeholder of a new value."""
        name = f"p{len(self.values)}"
        self.values[name] = value
        return f"${name}"


# What the intervals of a near set are on.
NEAR_COLUMNS = {"time": schema.TS, "iteration": schema.ITERATION, "seq": schema.SEQ}


@dataclass(slots=True)
class Compiler:
    """One segment's statement in the making. `near` counts the near sets met."""

    segment: SegmentScan
    parameters: Parameters
    near: int = 0

    def predicate(self, expr: LeafExpr, *, exact: bool = False) -> str:
        """SQL that is true for the rows that match; never NULL where `exact`."""
        if isinstance(expr, q.Everything):
            return "true"
        if isinstance(expr, Nothing):
            return "false"
        if isinstance(expr, (q.And, q.Or)):
            word = " AND " if isinstance(expr, q.And) else " OR "
            parts = [self.predicate(item, exact=exact) for item in expr.items]
            return f"({word.join(parts)})" if parts else str(isinstance(expr, q.And)).lower()
        if isinstance(expr, q.Not):
            return f"(NOT {self.predicate(expr.item, exact=True)})"
        if isinstance(expr, q.Contains):
            return self._contains(expr.literal)
        if isinstance(expr, q.Matches):
            pattern = self.parameters.add(regex(expr.pattern, expr.flags))
            return f"regexp_matches({schema.TEXT}, {pattern})"
        sql = self._nullable(expr)
        return f"coalesce({sql}, false)" if exact else sql

    def _nullable(self, expr: LeafExpr) -> str:
        if isinstance(expr, InStreams):
            return in_ranges(schema.STREAM, self.segment.slots[expr.slot])
        if isinstance(expr, InTemplates):
            return in_ranges(schema.TID, self.segment.slots[expr.slot])
        if isinstance(expr, RankIs):
            return self._rank(expr)
        if isinstance(expr, q.NearSet):
            self.near += 1
            return f"({NEAR_COLUMNS[expr.axis]} < near{self.near - 1}.high)"
        assert isinstance(expr, q.Field), expr
        return self._field(expr)

    def _contains(self, literal: str) -> str:
        try:
            literal.encode()
        except UnicodeEncodeError:
            return "false"  # stored text is UTF-8: it holds no lone surrogate
        return f"contains({schema.TEXT}, {self.parameters.add(literal)})"

    def _rank(self, expr: RankIs) -> str:
        own = in_ranges(schema.STREAM, self.segment.slots[expr.slot])
        if not self.segment.ranked:
            return own  # plain, so that DuckDB pushes it into the reader
        override = f"nullif({schema.RANK}, {schema.NO_RANK})"
        other = numbers_sql(override, expr.field.op, number_values(expr.field))
        return f"CASE WHEN {schema.RANK} IS NULL THEN {own} ELSE {other} END"

    def _field(self, term: q.Field) -> str:
        if term.key in _NUMERIC_COLUMNS:
            return numbers_sql(_NUMERIC_COLUMNS[term.key], term.op, number_values(term))
        if term.key in _TEXT_COLUMNS:
            return texts_sql(_TEXT_COLUMNS[term.key], term, self.parameters.add)
        if term.key == "call_site":
            return call_site_sql(schema.CALL_SITE, term, self.parameters.add)
        return metadata_sql(self.segment, term, self.parameters.add)
