"""Time bounds, the run and the kind: terms that restrict a whole query move out of its tree."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ranklog.errors import BadQuery
from ranklog.model.query import (
    And,
    Exact,
    Expr,
    Field,
    Glob,
    Number,
    Range,
    RunSelector,
)
from ranklog.plan.lexer import glob_literal
from ranklog.plan.tree import all_of, children

_BACK = re.compile(r"(?P<name>.+)~(?P<back>[0-9]+|ok)", re.DOTALL)


@dataclass(slots=True)
class Extracted:
    """What was found at the top level of a query, and the terms that remain."""

    expr: Expr
    run: RunSelector | None = None
    since_ns: int | None = None
    until_ns: int | None = None
    last_ns: int | None = None
    kind: str = "line"
    nested_last: bool = False

    def narrow(self, since_ns: int | None, until_ns: int | None) -> None:
        """Intersect with a half-open range; None is open."""
        if since_ns is not None:
            self.since_ns = since_ns if self.since_ns is None else max(self.since_ns, since_ns)
        if until_ns is not None:
            self.until_ns = until_ns if self.until_ns is None else min(self.until_ns, until_ns)


def extract_bounds(expr: Expr) -> Extracted:
    """Take times, `last:`, `run:` and `kind:` from the top level of an AND."""
    found = Extracted(expr)
    items = expr.items if isinstance(expr, And) else (expr,)
    kept = [item for item in items if not _take(item, found)]
    found.expr = all_of(kept)
    found.nested_last = any(_has_last(item) for item in kept)
    for item in kept:
        _reject_relative_runs(item)
    return found


def parse_run_selector(text: str) -> RunSelector:
    """`NAME`, `NAME@LAUNCH`, `NAME@*`, `NAME~1`, `NAME~ok`."""
    back = _BACK.fullmatch(text)
    if back is not None:
        if back["back"] == "ok":
            return RunSelector(back["name"], ok=True)
        return RunSelector(back["name"], back=int(back["back"]))
    name, at, launch = text.rpartition("@")
    if not at:
        name, launch = text, ""
    if not name or (at and not launch):
        raise BadQuery(
            f"{text!r} selects no run",
            hint="write NAME, NAME@LAUNCH, NAME~1, NAME~ok or NAME@*",
        )
    return RunSelector(name, launch=launch or None)


def render_run_selector(run: RunSelector) -> str:
    """The inverse of `parse_run_selector`."""
    if run.ok:
        return f"{run.name}~ok"
    if run.back:
        return f"{run.name}~{run.back}"
    return run.name if run.launch is None else f"{run.name}@{run.launch}"


def _take(item: Expr, found: Extracted) -> bool:
    """Whether the term was a bound, and is noted in `found`."""
    if not isinstance(item, Field) or item.op != ":" or len(item.values) != 1:
        return False
    value = item.values[0]
    if item.key == "time" and isinstance(value, Range):
        found.narrow(_ns(value.low), _ns(value.high))
        return True
    if item.key == "last" and isinstance(value, Number):
        span = int(value.value)
        found.last_ns = span if found.last_ns is None else min(found.last_ns, span)
        return True
    if item.key == "kind" and isinstance(value, Exact):
        found.kind = value.text
        return True
    return item.key == "run" and _take_run(value, found)


def _take_run(value: object, found: Extracted) -> bool:
    selector = _selector_of(value)
    if selector is None:
        return False
    if found.run is not None and found.run != selector:
        raise BadQuery(
            f"two runs are given, {render_run_selector(found.run)} "
            f"and {render_run_selector(selector)}, and no line is of both",
            hint="for lines of either write run:a,b",
        )
    found.run = selector
    return True


def _selector_of(value: object) -> RunSelector | None:
    """Of a value of `run:`; a glob selects only as `NAME@*`, other globs stay terms."""
    if isinstance(value, Exact):
        return parse_run_selector(value.text)
    if isinstance(value, Glob) and value.source.endswith("@*"):
        name = glob_literal(value.source[:-2])
        return RunSelector(name, launch="*") if name else None
    return None


def _ns(end: int | float | None) -> int | None:
    return None if end is None else int(end)


def _has_last(expr: Expr) -> bool:
    if isinstance(expr, Field):
        return expr.key == "last"
    return any(_has_last(item) for item in children(expr))


def _reject_relative_runs(expr: Expr) -> None:
    """`NAME~1` needs the list of launches, which no single line has."""
    if isinstance(expr, Field) and expr.key == "run":
        for value in expr.values:
            if isinstance(value, Exact) and _BACK.fullmatch(value.text):
                raise BadQuery(
                    f"run:{value.text} can't stand in a list, in OR or in NOT",
                    hint="name the launch, as in run:NAME@LAUNCH (`ranklog runs` lists them)",
                )
    for item in children(expr):
        _reject_relative_runs(item)
