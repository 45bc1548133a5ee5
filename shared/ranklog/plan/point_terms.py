"""Turn a query's tree into what a scan of points can evaluate: terms on series become sets.

A segment knows its series, dimensions and contexts by place. So `layer:h.*` is answered once per
distinct dimensions, and the scan compares small integers. What a point has under a key is the first
of: its dimension, its context's metadata, and, where the key is its series' name, its value.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ranklog.errors import BadQuery
from ranklog.layout.index import SegmentIndex
from ranklog.layout.point_index import SeriesTable
from ranklog.model import query as q
from ranklog.plan.scope import STREAM_FIELDS, StreamTerms, flag_holds, ranges_of
from ranklog.plan.tables import tables_of
from ranklog.plan.tasks import (
    InContexts,
    InSeries,
    InStreams,
    LeafExpr,
    Nothing,
    Pairs,
    RankIs,
)
from ranklog.plan.values import COMPARE, Regexes, in_range, number_values, texts_hold

VALUE = "value"
_NUMERIC = frozenset(["iteration", "time", "seq", VALUE])
# What lines have and points have not.
_ABSENT = frozenset(["level", "call_site", "template", "logger", "function", "group"])
_NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


@dataclass(frozen=True, slots=True)
class PreparedPoints:
    """`expr` refers to `slots[i]`: (what it is a set of, the term), filled per segment."""

    expr: LeafExpr
    slots: tuple[tuple[str, q.Field], ...]
    near: tuple[q.NearSet, ...]


@dataclass(slots=True)
class _Preparing:
    slots: list[tuple[str, q.Field]] = field(default_factory=list)
    near: list[q.NearSet] = field(default_factory=list)

    def slot(self, kind: str, term: q.Field) -> int:
        if (kind, term) not in self.slots:
            self.slots.append((kind, term))
        return self.slots.index((kind, term))

    def expr(self, expr: q.Expr) -> LeafExpr:
        if isinstance(expr, q.Not):
            return q.Not(self.expr(expr.item))  # type: ignore[arg-type]
        if isinstance(expr, (q.And, q.Or)):
            return type(expr)(tuple(self.expr(item) for item in expr.items))  # type: ignore[misc]
        if isinstance(expr, (q.Contains, q.Matches)):
            raise BadQuery(
                "points have no text to search in", hint="name a series: series:loss, series:grad*"
            )
        if isinstance(expr, (q.Near, q.Spike)):
            raise BadQuery("near() and spike() can't stand here")
        if isinstance(expr, q.NearSet):
            self.near.append(expr)
        return self.field(expr) if isinstance(expr, q.Field) else expr

    def field(self, term: q.Field) -> LeafExpr:
        if term.key in STREAM_FIELDS:
            return InStreams(self.slot("streams", term))
        if term.key == "rank":
            return RankIs(self.slot("streams", term), term)
        if term.key == "series":
            return InSeries(self.slot("name", term))
        if term.key in _NUMERIC:
            return q.Field(term.key, term.op, number_values(term))
        if term.key == "kind":
            return _constant(texts_hold(term, ["point"], _plain)[0])
        if term.key == "superseded":
            return _constant(flag_holds(term, False))
        if term.key in _ABSENT:
            return _constant(_absent_holds(term))
        if term.key == "id":
            raise BadQuery("points have no id", hint="ask by run, rank, iteration and series")
        return self._named(term)

    def _named(self, term: q.Field) -> LeafExpr:
        """A dimension, else metadata of the context, else the value of the series of that name."""
        of_dims = InSeries(self.slot("dims", term))
        has_dims = InSeries(self.slot("dims?", term))
        of_context = InContexts(self.slot("context", term))
        has_context = InContexts(self.slot("context?", term))
        own = InSeries(self.slot("own", term))
        absent = _constant(_absent_holds(term))
        value = _or(_and(own, _value_term(term)), _and(q.Not(own), absent))  # type: ignore[arg-type]
        rest = _or(of_context, _and(q.Not(has_context), value))  # type: ignore[arg-type]
        return _or(of_dims, _and(q.Not(has_dims), rest))  # type: ignore[arg-type]


def _and(*items: LeafExpr) -> LeafExpr:
    return q.And(items)  # type: ignore[arg-type]


def _or(*items: LeafExpr) -> LeafExpr:
    return q.Or(items)  # type: ignore[arg-type]


def _constant(held: bool) -> LeafExpr:
    return q.Everything() if held else Nothing()


def _absent_holds(term: q.Field) -> bool:
    return term.op == ":" and any(isinstance(value, q.Null) for value in term.values)


def _value_term(term: q.Field) -> LeafExpr:
    """The term's numbers against the value; texts compare with no number."""
    values = tuple(v for v in term.values if isinstance(v, (q.Number, q.Range, q.Null, q.Present)))
    if values:
        return q.Field(VALUE, term.op, values)
    return q.Field(VALUE, ":", (q.Present(),)) if term.op == "!=" else Nothing()


def _plain(pattern: str, flags: str, texts: Sequence[str]) -> list[bool]:
    raise BadQuery("this field takes plain values")


def prepare_points(expr: q.Expr) -> PreparedPoints:
    """Replace terms on streams, series, dimensions and metadata by slots. Raises BadQuery."""
    preparing = _Preparing()
    leaf = preparing.expr(expr)
    return PreparedPoints(leaf, tuple(preparing.slots), tuple(preparing.near))


# --- filling -------------------------------------------------------------------------------------
class PointResolver:
    """Fills slots for segment after segment."""

    def __init__(self, prepared: PreparedPoints, regexes: Regexes, streams: StreamTerms) -> None:
        self._slots = prepared.slots
        self._regexes = regexes
        self._streams = streams

    def fill(self, index: SegmentIndex) -> tuple[Pairs, ...]:
        """The sets of one segment, as ranges of places."""
        return tuple(self._fill(kind, term, index) for kind, term in self._slots)

    def _fill(self, kind: str, term: q.Field, index: SegmentIndex) -> Pairs:
        if kind == "streams":
            return self._streams.ranges(term, index)
        return tables_of(index).known((kind, term), lambda: self._set(kind, term, index.series))

    def _set(self, kind: str, term: q.Field, table: SeriesTable) -> Pairs:
        if kind == "name":
            held = texts_hold(term, list(table.names), self._regexes)
            return _series_of(table.name, held)
        if kind == "own":
            return _series_of(table.name, [name == term.key for name in table.names])
        of_dims = kind.startswith("dims")
        texts = table.dims if of_dims else table.contexts
        found = [values_of(text).get(term.key) for text in texts]
        if kind.endswith("?"):
            held = [value is not None for value in found]
        else:
            held = _values_hold(term, found, self._regexes)
        if of_dims:
            return _series_of(table.dim, held)
        return ranges_of([place for place, hit in enumerate(held) if hit])


def _series_of(places: Sequence[int], held: Sequence[bool]) -> Pairs:
    """Series whose name (or dimensions) is one of those that hold."""
    if not any(held):
        return ()
    if all(held):
        return ((0, len(places)),) if len(places) else ()
    return ranges_of([s for s, place in enumerate(places) if held[place]])


@lru_cache(maxsize=65_536)
def values_of(text: str) -> dict[str, Any]:
    """Dimensions or metadata of a canonical text. Not to be changed."""
    found: dict[str, Any] = json.loads(text)
    return found


def _values_hold(term: q.Field, values: Sequence[Any], regexes: Regexes) -> list[bool]:
    """The term for each value, None is absent and holds nothing here: numbers compare with numbers,
    texts with texts."""
    texts = [value if isinstance(value, str) else None for value in values]
    wanted = tuple(v for v in term.values if isinstance(v, (q.Exact, q.Glob, q.RegexValue)))
    held = [False] * len(values)
    if wanted:
        of_texts = texts_hold(q.Field(term.key, term.op, wanted), texts, regexes)
        held = [text is not None and hit for text, hit in zip(texts, of_texts, strict=True)]
    return [
        hit or (value is not None and _number_or_presence(term, value))
        for hit, value in zip(held, values, strict=True)
    ]


def _number_or_presence(term: q.Field, value: Any) -> bool:
    """What the term's numbers, `*` and `null` say of a value that is there."""
    if any(isinstance(v, q.Present) for v in term.values) and term.op != "!=":
        return True
    if any(isinstance(v, q.Null) for v in term.values) and term.op == "!=":
        return True
    numbers = [v for v in term.values if isinstance(v, (q.Number, q.Range))]
    number = _NUMBERS.get(value) if isinstance(value, str) else value
    if number is None or not numbers:
        return False
    if term.op == "!=":
        return number == number and not any(_compare(":", v, number) for v in numbers)
    return any(_compare(term.op, v, number) for v in numbers)


def _compare(op: str, wanted: q.Number | q.Range, x: int | float) -> bool:
    if isinstance(wanted, q.Range):
        return x == x and in_range(op, wanted, x)
    if wanted.value != wanted.value:
        return op == ":" and x != x
    return bool(COMPARE[op](x, wanted.value))


Terms = Callable[[LeafExpr], bool]


def any_term(expr: LeafExpr, holds: Terms) -> bool:
    """Whether some leaf of the tree is such a one."""
    if isinstance(expr, (q.And, q.Or)):
        return any(any_term(item, holds) for item in expr.items)
    if isinstance(expr, q.Not):
        return any_term(expr.item, holds)
    return holds(expr)


def slots_used(expr: LeafExpr) -> Iterable[int]:
    """Slots of series that the tree refers to."""
    if isinstance(expr, (q.And, q.Or)):
        for item in expr.items:
            yield from slots_used(item)
    elif isinstance(expr, q.Not):
        yield from slots_used(expr.item)
    elif isinstance(expr, InSeries):
        yield expr.slot
