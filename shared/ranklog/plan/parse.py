"""A query's text into its tree of terms, its bounds and its run: what the rest of the project calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ranklog import limits
from ranklog.errors import BadQuery
from ranklog.model.query import Expr, Field, Query, RunSelector
from ranklog.plan.bounds import extract_bounds, parse_run_selector, render_run_selector
from ranklog.plan.expr_json import expr_from_json, expr_to_json
from ranklog.plan.grammar import Parser
from ranklog.plan.render import render_expr
from ranklog.plan.times import parse_duration, parse_zone
from ranklog.plan.typed import Clock


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """`expr` without the bounds and the run that stood at its top level; half-open ns."""

    expr: Expr
    run: RunSelector | None = None
    since_ns: int | None = None
    until_ns: int | None = None
    last_ns: int | None = None
    kind: str = "line"

    def to_query(self, **shape: Any) -> Query:
        """The reader's query with these bounds; `shape` is limit, order, by and so on."""
        return Query(
            self.expr,
            run=self.run,
            since_ns=self.since_ns,
            until_ns=self.until_ns,
            last_ns=self.last_ns,
            kind=self.kind,
            **shape,
        )


def parse_query(text: str, *, now_ns: int, tz: str = "UTC", series: bool = False) -> ParsedQuery:
    """Parse; `series` is the meaning in `series` and `plot`, where a word names a series.

    Raises BadQuery with the position of the character that does not fit.
    """
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > limits.QUERY_BYTES_MAX:
        raise BadQuery(
            f"the query has {size} bytes, over the limit of {limits.QUERY_BYTES_MAX} (8 KiB)",
            hint="split it, or match lists of values with one regex",
            position=0,
        )
    parser = Parser(text, clock_of(now_ns, tz), series=series)
    found = extract_bounds(parser.parse())
    if found.nested_last:
        raise BadQuery(
            "last: counts back from the newest line in scope, "
            "so it can't stand inside OR, NOT or near",
            hint="put it beside the other terms, or write since:",
            position=parser.last_at,
        )
    return ParsedQuery(
        found.expr, found.run, found.since_ns, found.until_ns, found.last_ns, found.kind
    )


def clock_of(now_ns: int, tz: str) -> Clock:
    """A Clock; BadQuery for an unknown zone."""
    try:
        return Clock(now_ns, parse_zone(tz))
    except ValueError as error:
        raise BadQuery(str(error), hint="for example Europe/Berlin, UTC or +02:00") from error


def parse_field(key: str, op: str, text: str, clock: Clock) -> Field:
    """One field term of an option's words: `parse_field("rank", ":", "0-7", clock)`."""
    parser = Parser(text, clock)
    field = parser.values_of(key, op, 0)
    if parser.scan.at != len(text):
        raise BadQuery(
            f"{text!r} is no value of {key}", hint="quote it, or separate with commas only"
        )
    return field


__all__ = [
    "ParsedQuery",
    "clock_of",
    "expr_from_json",
    "expr_to_json",
    "parse_duration",
    "parse_field",
    "parse_query",
    "parse_run_selector",
    "render_expr",
    "render_run_selector",
]
