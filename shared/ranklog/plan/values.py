"""Whether one value fulfils a field's term: for what the planner knows per stream or template.

The scan compiles the same meaning to SQL for what it knows per line (scan/fields).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ranklog.errors import BadQuery
from ranklog.model import query as q

COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    ":": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


class Regexes(Protocol):
    """RE2 over many texts; its owner is scan, so that the planner stays pure Python."""

    def __call__(self, pattern: str, flags: str, texts: Sequence[str]) -> list[bool]:
        """Whether each text has a match. Raises BadQuery if RE2 can't run the pattern."""
        ...


def text_values(field: q.Field) -> tuple[q.Value, ...]:
    """A field's values for a text field: a bare number stands for its spelling."""
    values = tuple(q.Exact(v.source) if isinstance(v, q.Number) else v for v in field.values)
    for value in values:
        if isinstance(value, q.Range):
            raise BadQuery(f"{field.key} holds text, which has no range", hint="use a wildcard")
    return values


def number_values(field: q.Field) -> tuple[q.Value, ...]:
    """A field's values for a numeric field; text is refused."""
    for value in field.values:
        if isinstance(value, (q.Exact, q.Glob, q.RegexValue)):
            shown = getattr(value, "text", None) or getattr(value, "source", "") or "a regex"
            raise BadQuery(f"{field.key} holds numbers, {shown!r} is none")
    return field.values


def numbers_hold(field: q.Field, values: Sequence[int | None]) -> list[bool]:
    """The term for each number; absent is false but for `null`."""
    wanted = number_values(field)
    if field.op == ":" and all(isinstance(value, q.Number) for value in wanted):
        # most terms on ranks, over hundreds of them in each segment
        chosen = {value.value for value in wanted if isinstance(value, q.Number)}
        return [value in chosen for value in values]
    cache: dict[int | None, bool] = {}
    for value in values:
        if value not in cache:
            cache[value] = _number_holds(field.op, wanted, value)
    return [cache[value] for value in values]


def texts_hold(field: q.Field, values: Sequence[str | None], regexes: Regexes) -> list[bool]:
    """The term for each text; absent is false but for `null`."""
    wanted = text_values(field)
    if field.op == ":" and all(isinstance(value, q.Exact) for value in wanted):
        # names of thousands of series, over as many of a segment
        chosen = {value.text for value in wanted if isinstance(value, q.Exact)}
        return [value in chosen for value in values]
    distinct = sorted({value for value in values if value is not None})
    results = [False] * len(distinct)
    for value in wanted:
        for i, hit in enumerate(_text_holds(field.op, value, distinct, regexes)):
            results[i] = results[i] or hit
    held = dict(zip(distinct, results, strict=True))
    if field.op == "!=":
        held = {text: not hit for text, hit in held.items()}
    null = any(isinstance(value, q.Null) for value in wanted) and field.op == ":"
    return [null if value is None else held[value] for value in values]


def _number_holds(op: str, wanted: Sequence[q.Value], x: int | None) -> bool:
    if x is None:
        return op == ":" and any(isinstance(value, q.Null) for value in wanted)
    if op == "!=":
        return not any(_one_number_holds(":", value, x) for value in wanted)
    return any(_one_number_holds(op, value, x) for value in wanted)


def _one_number_holds(op: str, value: q.Value, x: int) -> bool:
    if isinstance(value, q.Number):
        return COMPARE[op](x, value.value)
    if isinstance(value, q.Range):
        return in_range(op, value, x)
    return isinstance(value, q.Present)


def in_range(op: str, value: q.Range, x: int | float) -> bool:
    """`:` is inside; the order operators compare with the range's near or far end."""
    above = value.low is None or x >= value.low
    below = value.high is None or (x <= value.high if value.inclusive else x < value.high)
    return {":": above and below, ">=": above, "<": not above, "<=": below, ">": not below}[op]


def _text_holds(op: str, value: q.Value, texts: Sequence[str], regexes: Regexes) -> Sequence[bool]:
    if isinstance(value, q.Exact):
        compare = COMPARE[":" if op == "!=" else op]
        return [compare(text, value.text) for text in texts]
    if isinstance(value, q.Glob):
        return regexes(value.pattern, "", texts)
    if isinstance(value, q.RegexValue):
        return regexes(value.pattern, value.flags, texts)
    return [isinstance(value, q.Present)] * len(texts)
