"""The functions of the query language: `near(…)` and `spike(…)`.

A function's arguments come behind its query, which may hold commas itself: so the query ends where
what follows reads as the other arguments up to the closing parenthesis.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ranklog.errors import BadQuery
from ranklog.model.query import FIELD_ALIASES, Expr, Near, Or, Spike
from ranklog.plan.bounds import extract_bounds
from ranklog.plan.times import parse_duration
from ranklog.plan.tree import only_fields
from ranklog.plan.typed import parse_number

if TYPE_CHECKING:
    from ranklog.plan.grammar import Parser

_NEAR_TAIL = re.compile(
    r"\s*,\s*(?P<axis>[a-z]+)\s*,\s*(?:(?P<side>[a-z]+)\s+)?(?P<distance>[0-9][0-9.a-zµ]*)\s*"
    r"(?:,\s*(?P<scope>[a-z]+)\s*)?(?=\))"
)
_SPIKE_TAIL = re.compile(r"\s*,\s*(?P<ratio>ratio:)?(?P<factor>[0-9.][0-9.eE+-]*)\s*(?=\))")
_NEAR_USAGE = "write near(QUERY, iteration, 2) or near(QUERY, time, before 30s, any)"
_SPIKE_USAGE = "write spike(SERIES TERMS, 8) or spike(SERIES TERMS, ratio:10)"


def parse_near(parser: Parser, start: int) -> Expr:
    """`near(QUERY, AXIS, [SIDE] DISTANCE[, SCOPE])`; the cursor is at its first character."""
    parser.scan.at = start + len("near(")
    outer, parser.series = parser.series, False
    inner, tail = _arguments(parser, start, _NEAR_TAIL, _NEAR_USAGE)
    parser.series = outer
    axis, side, scope = tail["axis"], tail["side"] or "both", tail["scope"] or "rank"
    axis = FIELD_ALIASES.get(axis, axis)
    known = axis in ("iteration", "time") and side in ("both", "before", "after")
    if not known or scope not in ("rank", "host", "any"):
        raise BadQuery(
            f"near takes no such arguments: {tail[0].lstrip(', ')}",
            hint=_NEAR_USAGE,
            position=tail.start(),
        )
    try:
        distance = parse_duration(tail["distance"]) if axis == "time" else int(tail["distance"])
    except ValueError as error:
        raise BadQuery(
            f"{tail['distance']} is no distance in {axis}",
            hint=_NEAR_USAGE,
            position=tail.start("distance"),
        ) from error
    return Near(inner, axis, distance, side, scope)


def parse_spike(parser: Parser, start: int) -> Expr:
    """`spike(SERIES [TERMS], [ratio:]K)`; the cursor is at its first character."""
    parser.scan.at = start + len("spike(")
    parser.scan.skip_blanks()
    name_at = parser.scan.at
    parser.scan.stops.append(_SPIKE_TAIL)
    name = parser.scan.string() if parser.scan.peek() == '"' else parser.scan.word()
    parser.scan.stops.pop()
    if not name:
        raise BadQuery("the spike names no series", hint=_SPIKE_USAGE, position=name_at)
    where, tail = _arguments(parser, start, _SPIKE_TAIL, _SPIKE_USAGE)
    if not only_fields(where):
        raise BadQuery("the terms of a spike are fields", hint=_SPIKE_USAGE, position=name_at)
    factor = parse_number(tail["factor"])
    if factor is None or not 0 < factor.value < float("inf"):
        raise BadQuery(
            f"{tail['factor']} is no positive number",
            hint=_SPIKE_USAGE,
            position=tail.start("factor"),
        )
    return Spike(name, where, float(factor.value), tail["ratio"] is not None)


def _arguments(
    parser: Parser, start: int, stop: re.Pattern[str], usage: str
) -> tuple[Expr, re.Match[str]]:
    """The query of a function and the match of its tail; the closing parenthesis is consumed."""
    parser.descend(start)
    parser.scan.stops.append(stop)
    expr = parser.alternatives()
    tail = parser.scan.at_stop()
    if tail is None:
        raise BadQuery("the function's arguments are incomplete", hint=usage, position=start)
    parser.scan.stops.pop()
    parser.scan.at = tail.end() + 1
    parser.depth -= 1
    parser.end_of_term(start)
    found = extract_bounds(Or((expr,)))  # bounds inside stay terms; what can't is refused
    if found.nested_last:
        raise BadQuery(
            "last: can't stand inside a function",
            hint="put it beside the other terms, or write since:",
            position=parser.last_at,
        )
    return expr, tail
