"""A query tree as text with all parentheses; parsing the text gives the tree again."""

from __future__ import annotations

import re

from ranklog.model.levels import LEVEL_NAMES
from ranklog.model.query import (
    And,
    Contains,
    Everything,
    Expr,
    Field,
    Glob,
    Matches,
    Near,
    NearSet,
    Not,
    Null,
    Number,
    Or,
    Present,
    Range,
    RegexValue,
    Spike,
    Value,
)
from ranklog.plan.lexer import quote, quote_glob
from ranklog.plan.times import UNITS_NS, render_time


def render_expr(expr: Expr) -> str:
    """Strings and fields as written shortest, operators in full: `((a AND b) OR NOT c)`."""
    if isinstance(expr, Everything):
        return "*"
    if isinstance(expr, Contains):
        return quote(expr.literal)
    if isinstance(expr, Matches):
        return _regex(expr.pattern, expr.flags)
    if isinstance(expr, Field):
        return expr.key + expr.op + ",".join(_value(expr.key, value) for value in expr.values)
    if isinstance(expr, Not):
        return "NOT " + render_expr(expr.item)
    if isinstance(expr, And):
        return "(" + " AND ".join(map(render_expr, expr.items)) + ")"
    if isinstance(expr, Or):
        return "(" + " OR ".join(map(render_expr, expr.items)) + ")"
    return _function(expr)


def render_duration(ns: int) -> str:
    """In the largest unit that divides it: 90000000000 is `90s`."""
    for unit, size in sorted(UNITS_NS.items(), key=lambda item: -item[1]):
        if ns % size == 0 and unit != "µs":
            return f"{ns // size}{unit}"
    raise AssertionError("one nanosecond divides every duration")


def _function(expr: Spike | Near | NearSet) -> str:
    if isinstance(expr, NearSet):
        return f"near(<{len(expr.groups)} groups of intervals>, {expr.axis}, 0, {expr.scope})"
    if isinstance(expr, Spike):
        where = "" if isinstance(expr.where, Everything) else " " + render_expr(expr.where)
        factor = ("ratio:" if expr.ratio else "") + repr(expr.factor)
        return f"spike({quote(expr.series)}{where}, {factor})"
    side = "" if expr.side == "both" else expr.side + " "
    distance = render_duration(expr.distance) if expr.axis == "time" else str(expr.distance)
    scope = "" if expr.scope == "rank" else ", " + expr.scope
    return f"near({render_expr(expr.query)}, {expr.axis}, {side}{distance}{scope})"


def _value(key: str, value: Value) -> str:
    if isinstance(value, Null):
        return "null"
    if isinstance(value, Present):
        return "*"
    if isinstance(value, Number):
        return value.source
    if isinstance(value, Range):
        return _range(key, value)
    if isinstance(value, RegexValue):
        return _regex(value.pattern, value.flags)
    if isinstance(value, Glob):
        return quote_glob(value.source)
    if value.quoted:
        return quote_glob(re.sub(r"([*?\\])", r"\\\1", value.text))
    return re.sub(r'([*?\\,()" \t\r\n\f\v])', r"\\\1", value.text)


def _range(key: str, value: Range) -> str:
    low, high = (_end(key, end) for end in (value.low, value.high))
    return f"{low}-{high}" if value.inclusive else f"{low}..{high}"


def _end(key: str, end: int | float | None) -> str:
    if end is None:
        return ""
    if key == "time":
        return render_time(int(end))
    if key == "level" and end in LEVEL_NAMES:
        return LEVEL_NAMES[int(end)]
    if isinstance(end, int):
        return str(end)
    return {"inf": "Inf", "-inf": "-Inf"}.get(repr(end), repr(end))


def _regex(pattern: str, flags: str) -> str:
    """Slashes get their backslash back; pairs of backslash and character stay as they are."""
    escaped = re.sub(
        r"\\.|/", lambda found: "\\/" if found[0] == "/" else found[0], pattern, flags=re.DOTALL
    )
    return f"/{escaped}/{flags}"
