"""Which of many written names a query is about, and what it asks of each: without a look at every name
where the query says which it wants.

A name is special where some term of the query tells it from others: a name or a glob of series, a value
of that series, a spike in it. All others are strangers, and the query says the same of all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from ranklog.client.series_terms import NEVER, Terms
from ranklog.model import query as q
from ranklog.plan.tree import children
from ranklog.plan.values import Regexes, texts_hold
from ranklog.telemetry.names import known, names_of

# No written name is this: what the query says of a stranger.
_STRANGER = "\x00"


class NameTable:
    """Written names in scope, and what a query may call each."""

    def __init__(self, written: Iterable[str]) -> None:
        self.written = frozenset(written)
        self._by_text: dict[str, list[str]] = {}
        for name in self.written:
            for text in names_of(name):
                self._by_text.setdefault(text, []).append(name)

    def called(self, text: str) -> Iterable[str]:
        """Names of the series that has this name, or that are it."""
        return (*self._by_text.get(text, ()), *self._by_text.get(known(text).series, ()))

    def holding(self, term: q.Field, regexes: Regexes) -> frozenset[str]:
        """Names for which a term on series holds."""
        if any(isinstance(value, q.Glob) and value.source == "*" for value in term.values):
            found = self.written
        elif all(isinstance(value, q.Exact) for value in term.values):
            texts = [value.text for value in term.values if isinstance(value, q.Exact)]
            found = frozenset(name for text in texts for name in self._by_text.get(text, ()))
        else:
            texts = list(self._by_text)
            held = texts_hold(replace(term, op=":"), texts, regexes)
            hits = (text for text, hit in zip(texts, held, strict=True) if hit)
            found = frozenset(name for text in hits for name in self._by_text[text])
        return self.written - found if term.op == "!=" else found


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked, and of which names; `rest`: of all but these."""

    expr: q.Expr
    names: frozenset[str]
    rest: bool = False


def questions(table: NameTable, expr: q.Expr, terms: Terms) -> list[Asked]:
    """What a query asks of the names in the table, each answer of which may hold for some point."""
    held = {t: table.holding(t, terms.regexes) for t in _fields(expr) if t.key == "series"}
    # a glob that all names fulfil tells none of them from another
    of_all = {term for term, names in held.items() if names == table.written}
    told = {t: names | {_STRANGER} if t in of_all else names for t, names in held.items()}
    terms = replace(terms, held=told)
    own = {name for key in _value_keys(expr) for name in table.called(key)}
    own |= {name for hits in terms.hits.values() for name in hits} & table.written
    special = own.union(*(names for term, names in held.items() if term not in of_all))
    found: dict[q.Expr, set[str]] = {}
    seen: dict[Any, q.Expr] = {}
    for name in special:
        place = (name,) if name in own else tuple(name in names for names in held.values())
        if place not in seen:
            seen[place] = terms.of(expr, name)
        found.setdefault(seen[place], set()).add(name)
    asked = [Asked(one, frozenset(names)) for one, names in found.items() if one != NEVER]
    stranger = terms.of(expr, _STRANGER)
    if stranger != NEVER and len(special) < len(table.written):
        asked.append(Asked(stranger, frozenset(special), rest=True))
    return asked


def restrict_names(asked: Asked, table: NameTable, key: str = "series") -> q.Expr:
    """A term that holds for these written names alone."""
    if asked.rest:
        return q.Not(_names(key, asked.names)) if asked.names else q.Everything()
    return q.Everything() if asked.names == table.written else _names(key, asked.names)


def _names(key: str, names: Collection[str]) -> q.Field:
    return q.Field(key, ":", tuple(q.Exact(name, quoted=True) for name in sorted(names)))


def _fields(expr: q.Expr) -> Iterator[q.Field]:
    if isinstance(expr, q.Field):
        yield expr
    for item in () if isinstance(expr, q.Spike) else children(expr):
        yield from _fields(item)


def _value_keys(expr: q.Expr) -> Iterator[str]:
    return (term.key for term in _fields(expr) if term.key not in q.BUILTIN_FIELDS)
