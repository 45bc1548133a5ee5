"""The options that every reading command has, AND-ed to a query."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from ranklog.errors import BadQuery
from ranklog.model.query import Expr, Field, Number, Query, Range
from ranklog.plan.bounds import Extracted, extract_bounds
from ranklog.plan.parse import ParsedQuery, clock_of, parse_field, parse_query
from ranklog.plan.tree import all_of

Restrictable = TypeVar("Restrictable", ParsedQuery, Query)


def restrict(
    query: Restrictable,
    *,
    now_ns: int,
    tz: str = "UTC",
    run: str | None = None,
    attempt: str | int | None = None,
    rank: str | int | None = None,
    host: str | None = None,
    level: str | int | None = None,
    iteration: str | int | None = None,
    since: str | None = None,
    until: str | None = None,
    last: str | None = None,
) -> Restrictable:
    """The query AND these options, each in the words of its field.

    `level` without an operator or a comma means at least: `WARNING` is `level>=WARNING`.
    """
    given = {"run": run, "attempt": attempt, "rank": rank, "host": host, "iteration": iteration}
    given |= {"since": since, "until": until, "last": last}
    terms: list[Expr] = [
        _term(option, ":", str(words), now_ns, tz)
        for option, words in given.items()
        if words is not None
    ]
    if level is not None:
        exact = "," in str(level) or ".." in str(level)
        terms.append(_term("level", ":" if exact else ">=", str(level), now_ns, tz))
    if not terms:
        return query
    found = extract_bounds(all_of([query.expr, *terms]))
    return _merged(query, found)


def _term(option: str, op: str, words: str, now_ns: int, tz: str) -> Expr:
    try:
        if option in ("since", "until", "last"):
            return _bound(option, words, now_ns, tz)
        return parse_field(option, op, words, clock_of(now_ns, tz))
    except BadQuery as error:
        raise BadQuery(f"--{option} {words}: {error.message}", hint=error.hint) from error


def _bound(option: str, words: str, now_ns: int, tz: str) -> Expr:
    quoted = words.replace("\\", "\\\\").replace('"', '\\"')
    found = parse_query(f'{option}:"{quoted}"', now_ns=now_ns, tz=tz)
    if found.last_ns is not None:
        return Field("last", ":", (Number(found.last_ns, words),))
    return Field("time", ":", (Range(found.since_ns, found.until_ns),))


def _merged(query: Restrictable, found: Extracted) -> Restrictable:
    found.narrow(query.since_ns, query.until_ns)
    if query.run is not None and found.run is not None and query.run != found.run:
        raise BadQuery(
            "the query and --run name two runs, and no line is of both",
            hint="leave one out; for lines of either write run:a,b in the query",
        )
    spans = [span for span in (query.last_ns, found.last_ns) if span is not None]
    return replace(
        query,
        expr=found.expr,
        run=query.run or found.run,
        since_ns=found.since_ns,
        until_ns=found.until_ns,
        last_ns=min(spans) if spans else None,
    )
