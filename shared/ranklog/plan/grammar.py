"""The grammar of queries, by recursive descent.

```
query  = and { "OR" and }                    and = not { ["AND"] not }
not    = [ "NOT" | "-" ] primary             primary = "(" query ")" | function | field | regex | string | word
field  = key op value { "," value }          op = ":" | ">=" | "<=" | ">" | "<" | "!="
key    = letter { letter | digit | _ . - / }
```
"""

from __future__ import annotations

import re

from ranklog import limits
from ranklog.errors import BadQuery
from ranklog.model.query import (
    BUILTIN_FIELDS,
    FIELD_ALIASES,
    Contains,
    Everything,
    Expr,
    Field,
    Matches,
    Near,
    Not,
    Number,
    Or,
    Range,
    Spike,
    Value,
)
from ranklog.plan import hints
from ranklog.plan.bounds import extract_bounds
from ranklog.plan.lexer import BLANKS, KEY, OPERATOR, Scanner
from ranklog.plan.times import parse_duration
from ranklog.plan.tree import all_of, any_of, nesting, only_fields
from ranklog.plan.typed import Clock, parse_number, text_value, typed_value

# What ends a function's query: its other arguments, up to the closing parenthesis.
_NEAR_TAIL = re.compile(
    r"\s*,\s*(?P<axis>[a-z]+)\s*,\s*(?:(?P<side>[a-z]+)\s+)?(?P<distance>[0-9][0-9.a-zµ]*)\s*"
    r"(?:,\s*(?P<scope>[a-z]+)\s*)?(?=\))"
)
_SPIKE_TAIL = re.compile(r"\s*,\s*(?P<ratio>ratio:)?(?P<factor>[0-9.][0-9.eE+-]*)\s*(?=\))")
_NEAR_USAGE = "write near(QUERY, iteration, 2) or near(QUERY, time, before 30s, any)"
_SPIKE_USAGE = "write spike(SERIES TERMS, 8) or spike(SERIES TERMS, ratio:10)"


class Parser:
    """`depth` counts the parentheses, NOTs and functions that are open at the cursor."""

    def __init__(self, text: str, clock: Clock, *, series: bool = False) -> None:
        self.text = text
        self.scan = Scanner(text)
        self.clock = clock
        self.series = series
        self.depth = 0
        self.terms = 0
        self.last_at: int | None = None

    def parse(self) -> Expr:
        """The whole text."""
        expr = self.alternatives()
        if self.scan.at < len(self.text):
            raise BadQuery(
                "a closing parenthesis without an opening one",
                hint='to find a parenthesis write ")"',
                position=self.scan.at,
            )
        if nesting(expr) > limits.QUERY_DEPTH_MAX:
            raise hints.too_deep(0)
        return expr

    def alternatives(self) -> Expr:
        """`and { "OR" and }`"""
        items = [self.conjunction(after="")]
        while self.scan.keyword("OR"):
            items.append(self.conjunction(after="OR"))
        return any_of(items)

    def conjunction(self, after: str) -> Expr:
        """`not { ["AND"] not }`; `after` is the operator that still waits for a term."""
        items: list[Expr] = []
        while True:
            self.scan.skip_blanks()
            if self._at_end_of_group() or (items and not after and self.scan.at_keyword("OR")):
                break
            if items and not after and self.scan.keyword("AND"):
                after = "AND"
                continue
            self._reject_operator()
            items.append(self.negation())
            after = ""
        if after:
            raise hints.lonely(after, self.scan.at)
        return all_of(items)

    def negation(self) -> Expr:
        """`[ "NOT" | "-" ] primary`"""
        start = self.scan.at
        if self.scan.keyword("NOT"):
            self.scan.skip_blanks()
            if self._at_end_of_group():
                raise hints.lonely("NOT", self.scan.at)
            self._reject_operator()
            read = self.negation
        elif self.scan.peek() == "-" and self.text[start + 1 : start + 2] not in ("", ")", *BLANKS):
            self.scan.at += 1
            read = self.primary  # a second "-" is text: it stands after no blank
        else:
            return self.primary()
        self._descend(start)
        item = read()
        self.depth -= 1
        return Not(item)

    def primary(self) -> Expr:
        """`"(" query ")" | function | field | regex | string | word`"""
        start = self.scan.at
        if self.scan.peek() == "(":
            return self._group(start)
        self.terms += 1
        if self.terms > limits.QUERY_TERMS_MAX:
            raise hints.too_many_terms(start)
        if self.scan.peek() == '"':
            return self._text_term(start, Contains(self.scan.string()))
        if self.scan.peek() == "/":
            term = Matches(*self.scan.regex())
            self._end_of_term(start)
            return self._text_term(start, term)
        if self.text.startswith("near(", start):
            return self._near(start)
        if self.text.startswith("spike(", start):
            return self._spike(start)
        return self._field(start) or self._word(start)

    def values_of(self, key: str, op: str, start: int) -> Field:
        """`value { "," value }` behind `key op`, which began at `start`."""
        self._reject_missing_value(key, op, start)
        values: list[Value] = []
        while True:
            values.append(typed_value(key, op, self.scan.value(), self.clock))
            if self.scan.at_boundary():
                break
            self._comma(key, op)
        if op == "!=" and len(values) > 1:
            raise BadQuery(
                f"{key}!= takes one value",
                hint=f"to leave out several write -{key}:a,b, and {key}:* for those that have it",
                position=start,
            )
        return Field(key, op, tuple(values))

    def _comma(self, key: str, op: str) -> None:
        if self.scan.peek() != ",":
            raise BadQuery(
                "text follows the closing quote of a value",
                hint="separate values by commas, terms by blanks",
                position=self.scan.at,
            )
        self.scan.at += 1
        if self.scan.at_boundary() or self.scan.peek() == ",":
            raise BadQuery(
                "a value is missing beside a comma",
                hint=f"write {key}{op}a,b without blanks, or quote a value that has a comma",
                position=self.scan.at - 1,
            )

    def _field(self, start: int) -> Expr | None:
        found = KEY.match(self.text, start)
        if found is None:
            return None
        written, key = found[0], FIELD_ALIASES.get(found[0], found[0])
        operator = OPERATOR.match(self.text, found.end())
        if operator is None:
            if written in BUILTIN_FIELDS and self.text.startswith("=", found.end()):
                raise hints.equals_sign(self.scan.word(), written, start)
            return None
        if self.text.startswith("://", found.end()):
            raise hints.address(self.scan.word(), written, start)
        self.scan.at = operator.end()
        if key == "last":
            return self._last(operator[0], start)
        field = self.values_of(key, operator[0], start)
        return _time_term(field, start) if key in ("time", "since", "until") else field

    def _word(self, start: int) -> Expr:
        word = self.scan.word()
        if word == "*" and not self.series:
            return Everything()
        if self.series:
            # the word is a glob here; a backslash is itself before anything but a wildcard
            glob = re.sub(r"\\([*?])|\\", lambda found: found[0] if found[1] else r"\\", word)
            return Field("series", ":", (text_value(glob, quoted=False),))
        return Contains(word)

    def _text_term(self, start: int, term: Expr) -> Expr:
        if self.series:
            raise BadQuery(
                "text terms can't restrict points, which have no text",
                hint="name a series, or restrict by fields: loss/* rank:0",
                position=start,
            )
        return term

    def _group(self, start: int) -> Expr:
        self._descend(start)
        self.scan.at += 1
        self.scan.stops.append(None)
        expr = self.alternatives()
        if self.scan.peek() != ")":
            raise BadQuery(
                "a parenthesis is not closed",
                hint='close it; to find a parenthesis write "("',
                position=start,
            )
        self.scan.at += 1
        self.scan.stops.pop()
        self.depth -= 1
        return expr

    def _near(self, start: int) -> Expr:
        self.scan.at = start + len("near(")
        outer, self.series = self.series, False
        inner, tail = self._arguments(start, _NEAR_TAIL, _NEAR_USAGE)
        self.series = outer
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

    def _spike(self, start: int) -> Expr:
        self.scan.at = start + len("spike(")
        self.scan.skip_blanks()
        name_at = self.scan.at
        self.scan.stops.append(_SPIKE_TAIL)
        name = self.scan.string() if self.scan.peek() == '"' else self.scan.word()
        self.scan.stops.pop()
        if not name:
            raise BadQuery("the spike names no series", hint=_SPIKE_USAGE, position=name_at)
        where, tail = self._arguments(start, _SPIKE_TAIL, _SPIKE_USAGE)
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
        self, start: int, stop: re.Pattern[str], usage: str
    ) -> tuple[Expr, re.Match[str]]:
        """The query of a function and the match of its tail; the closing parenthesis is consumed."""
        self._descend(start)
        self.scan.stops.append(stop)
        expr = self.alternatives()
        tail = self.scan.at_stop()
        if tail is None:
            raise BadQuery("the function's arguments are incomplete", hint=usage, position=start)
        self.scan.stops.pop()
        self.scan.at = tail.end() + 1
        self.depth -= 1
        self._end_of_term(start)
        found = extract_bounds(Or((expr,)))  # bounds inside stay terms; what can't is refused
        if found.nested_last:
            raise BadQuery(
                "last: can't stand inside a function",
                hint="put it beside the other terms, or write since:",
                position=self.last_at,
            )
        return expr, tail

    def _last(self, op: str, start: int) -> Expr:
        self.last_at = start if self.last_at is None else self.last_at
        self._reject_missing_value("last", op, start)
        raw = self.scan.value()
        try:
            if op != ":" or raw.kind == "regex" or not self.scan.at_boundary():
                raise ValueError(f"last{op}{raw.source} is no span back from the newest line")
            return Field("last", ":", (Number(parse_duration(raw.glob), raw.source),))
        except ValueError as error:
            raise BadQuery(str(error), hint="write last:10m", position=start) from error

    def _descend(self, start: int) -> None:
        self.depth += 1
        if self.depth > limits.QUERY_DEPTH_MAX:
            raise hints.too_deep(start)

    def _at_end_of_group(self) -> bool:
        return self.scan.peek() in ("", ")") or self.scan.at_stop() is not None

    def _reject_operator(self) -> None:
        """Where a term must begin."""
        for word in ("AND", "OR"):
            if self.scan.at_keyword(word):
                raise hints.lonely(word, self.scan.at)

    def _end_of_term(self, start: int) -> None:
        if not self.scan.at_boundary():
            raise BadQuery(
                f"text follows the term {self.text[start : self.scan.at]}",
                hint="separate terms by blanks",
                position=self.scan.at,
            )

    def _reject_missing_value(self, key: str, op: str, start: int) -> None:
        following = self.text[self.scan.at :]
        if op == ":":
            doubled = hints.two_operators(key, following, start)
            if doubled is not None:
                raise doubled
        if self.scan.at_boundary():
            raise hints.no_value(key, op, following, start)


def _time_term(field: Field, start: int) -> Field:
    """`time`, `since` and `until` with any operator as ranges of `time`."""
    ranges = [value for value in field.values if isinstance(value, Range)]
    assert len(ranges) == len(field.values)
    key, op = field.key, field.op
    if key == "time" and op == ":":
        return field
    if len(ranges) > 1 or op == "!=" or (key != "time" and op != ":"):
        raise BadQuery(
            f"{key}{op} takes one time" if len(ranges) > 1 else f"{key}{op} is no bound",
            hint="write since:1h, until:30m or time:A..B",
            position=start,
        )
    low, high = ranges[0].low, ranges[0].high
    bounds = {
        "since:": Range(low, None),
        "until:": Range(None, low),
        "time>=": Range(low, None),
        "time<": Range(None, low),
        "time>": Range(high, None),
        "time<=": Range(None, high),
    }
    return Field("time", ":", (bounds[key + op],))
