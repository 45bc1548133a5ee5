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
    Not,
    Number,
    Range,
    Value,
)
from ranklog.plan import functions, hints
from ranklog.plan.lexer import BLANKS, KEY, OPERATOR, Scanner
from ranklog.plan.times import parse_duration
from ranklog.plan.tree import all_of, any_of, nesting
from ranklog.plan.typed import Clock, text_value, typed_value


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
        self.descend(start)
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
            self.end_of_term(start)
            return self._text_term(start, term)
        if self.text.startswith("near(", start):
            return functions.parse_near(self, start)
        if self.text.startswith("spike(", start):
            return functions.parse_spike(self, start)
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
        self.descend(start)
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

    def descend(self, start: int) -> None:
        """One level deeper."""
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

    def end_of_term(self, start: int) -> None:
        """Refuse text directly behind the term that began at `start`."""
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
