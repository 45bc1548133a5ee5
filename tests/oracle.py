"""What a query means, line by line, in plain Python: slow, and nothing shared with the engine.

Regexes are RE2's own, over each physical line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import re2

from ranklog.layout.tokens_pure import template_of
from ranklog.model import query as q
from ranklog.model.answer import Line

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    ">": lambda a, b: a > b,
    "<": lambda a, b: a < b,
    ">=": lambda a, b: a >= b,
    "<=": lambda a, b: a <= b,
}
STREAM_TEXTS = {"channel": "channel", "source": "source", "run_id": "run_id"}
LINE_TEXTS = {"function": "function", "logger": "logger"}
NUMBERS = {
    "level": "level",
    "iteration": "iteration",
    "rank": "rank",
    "local_rank": "local_rank",
    "attempt": "attempt",
    "group": "group",
    "time": "ts_ns",
}


def matching(lines: Sequence[Line], expr: q.Expr) -> list[str]:
    """Ids of the lines that match."""
    return [line.id for line in lines if holds(expr, line, lines)]


def holds(expr: q.Expr, line: Line, lines: Sequence[Line]) -> bool:
    if isinstance(expr, q.Everything):
        return True
    if isinstance(expr, q.Contains):
        return expr.literal in line.text
    if isinstance(expr, q.Matches):
        return re2_search(expr.pattern, expr.flags, line.text)
    if isinstance(expr, q.Not):
        return not holds(expr.item, line, lines)
    if isinstance(expr, q.And):
        return all(holds(item, line, lines) for item in expr.items)
    if isinstance(expr, q.Or):
        return any(holds(item, line, lines) for item in expr.items)
    if isinstance(expr, q.Near):
        return near(expr, line, lines)
    assert isinstance(expr, q.Field), expr
    return field_holds(expr, line)


def re2_search(pattern: str, flags: str, text: str) -> bool:
    prefix = f"(?{flags})" if flags else ""
    return re2.search(prefix + pattern, text) is not None


def near(expr: q.Near, line: Line, lines: Sequence[Line]) -> bool:
    """Lines without an iteration or a rank are not asked for here."""
    axis = "ts_ns" if expr.axis == "time" else "iteration"
    at = getattr(line, axis)
    for match in lines:
        other = getattr(match, axis)
        if at is None or other is None or match.run_id != line.run_id:
            continue
        if expr.scope == "host" and match.host != line.host:
            continue
        if expr.scope == "rank" and match.rank != line.rank:
            continue
        before = 0 if expr.side == "after" else expr.distance
        after = 0 if expr.side == "before" else expr.distance
        if other - before <= at <= other + after and holds(expr.query, match, lines):
            return True
    return False


def field_holds(term: q.Field, line: Line) -> bool:
    if term.key in NUMBERS:
        return number_holds(term, [getattr(line, NUMBERS[term.key])])
    if term.key in STREAM_TEXTS | LINE_TEXTS:
        return text_holds(term, getattr(line, term.key), whole)
    if term.key == "run":
        return both(term, line.run, line.run_id)
    if term.key == "host":
        return both(term, line.host, line.host and line.host.split(".")[0])
    if term.key == "stream":
        return text_holds(term, line.stream_id, whole)
    if term.key == "id":
        return text_holds(term, line.id, whole)
    if term.key == "copy":
        return text_holds(term, "true" if line.copy else "false", whole)
    if term.key == "call_site":
        return text_holds(term, line.call_site, path_end)
    if term.key == "template":
        body = line.text  # corpora of these tests have no envelopes
        template = None if "\x00" in body else template_of(body).replace("\x00", "<*>")
        return text_holds(term, template, whole)
    return metadata_holds(term, line.metadata)


def both(term: q.Field, a: str | None, b: str | None) -> bool:
    found = [text_holds(term, a, whole), text_holds(term, b, whole)]
    return all(found) if term.op == "!=" else any(found)


def metadata_holds(term: q.Field, metadata: dict[str, Any]) -> bool:
    value = metadata.get(term.key)
    if isinstance(value, str):
        term_ = q.Field(term.key, term.op, tuple(v for v in term.values if not is_number(v)))
        return bool(term_.values) and text_holds(term_, value, whole)
    term_ = q.Field(term.key, term.op, tuple(v for v in term.values if not is_text(v)))
    return bool(term_.values) and number_holds(term_, [value])


def is_number(value: q.Value) -> bool:
    return isinstance(value, (q.Number, q.Range))


def is_text(value: q.Value) -> bool:
    return isinstance(value, (q.Exact, q.Glob, q.RegexValue))


def number_holds(term: q.Field, values: Sequence[int | float | None]) -> bool:
    (x,) = values
    if term.op == "!=":
        nulls = [v for v in term.values if isinstance(v, q.Null)]
        others = [v for v in term.values if not isinstance(v, q.Null)]
        if x is None:
            return False
        if nulls and not others:
            return True
        return all(differs(v, x) for v in others)
    return any(one_number(term.op, v, x) for v in term.values)


def differs(value: q.Value, x: int | float) -> bool:
    assert isinstance(value, q.Number)
    if math.isnan(value.value):
        return not math.isnan(x)
    return not math.isnan(x) and x != value.value


def one_number(op: str, value: q.Value, x: int | float | None) -> bool:
    if isinstance(value, q.Null):
        return x is None
    if x is None:
        return False
    if isinstance(value, q.Present):
        return True
    if isinstance(value, q.Number):
        if op == ":" and math.isnan(value.value):
            return math.isnan(x)
        return x == value.value if op == ":" else OPERATORS[op](x, value.value)
    assert isinstance(value, q.Range) and op == ":"
    if math.isnan(x):
        return False
    low = value.low is None or x >= value.low
    high = value.high is None or (x <= value.high if value.inclusive else x < value.high)
    return low and high


def text_holds(term: q.Field, x: str | None, same: Callable[[q.Value, str], bool]) -> bool:
    if term.op == "!=":
        if x is None:
            return False
        return all(isinstance(v, q.Null) or not same(v, x) for v in term.values)
    if term.op != ":":
        (value,) = term.values
        assert isinstance(value, q.Exact)
        return x is not None and OPERATORS[term.op](x, value.text)
    for value in term.values:
        if isinstance(value, q.Null):
            if x is None:
                return True
        elif x is not None and (isinstance(value, q.Present) or same(value, x)):
            return True
    return False


def whole(value: q.Value, x: str) -> bool:
    if isinstance(value, q.Exact):
        return x == value.text
    if isinstance(value, q.Number):
        return x == value.source
    if isinstance(value, q.Glob):
        return glob(value.source, x)
    assert isinstance(value, q.RegexValue)
    return re2_search(value.pattern, value.flags, x)


def path_end(value: q.Value, x: str) -> bool:
    if isinstance(value, q.RegexValue):
        return whole(value, x)
    text = value.text if isinstance(value, q.Exact) else value.source  # type: ignore[union-attr]
    same = (lambda s: s == text) if isinstance(value, q.Exact) else (lambda s: glob(text, s))
    ends = [x] if re.search(r":[0-9*?]+$", text) else [x, re.sub(r":[0-9]+$", "", x)]
    return any(same(tail) for end in ends for tail in tails(end))


def tails(path: str) -> list[str]:
    """The path, and what follows each slash."""
    return [path, *(path[i + 1 :] for i, character in enumerate(path) if character == "/")]


def glob(source: str, x: str) -> bool:
    parts = re.findall(r"\\.|.", source, re.DOTALL)
    wild = {"*": ".*", "?": "."}
    pattern = "".join(wild.get(part) or re.escape(part[-1]) for part in parts)
    return re.fullmatch(pattern, x, re.DOTALL) is not None
