"""A query about points, said of one series: terms on series become true or false, values become its own.

`loss/* rank:0 grad_norm>5` holds for a point of the series grad_norm if its value is over 5, for one of
loss/mean if its name fits; what is left (rank, iteration, dimensions, context) is asked of the rows.
Numbers are in the unit of the name that the query writes: `iteration_time_ms>500` of a series written
as elapsed_s in seconds is `elapsed_s>0.5`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from ranklog.model import query as q
from ranklog.plan.tree import all_of, any_of
from ranklog.plan.values import Regexes, texts_hold
from ranklog.telemetry.names import folded, is_metric, known, names_of

NEVER = q.Not(q.Everything())


@dataclass(frozen=True, slots=True)
class Terms:
    """What a query asks of series. `hits`: ids of records per spike() term and written name; `value_key`:
    the field under which a row has the value of this series; `held`: names for which terms on series
    hold. `stored`: rows are points of the store, which have no ids."""

    regexes: Regexes
    hits: Mapping[q.Spike, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    value_key: Callable[[str], str] = lambda written: written
    held: Mapping[q.Field, frozenset[str]] = field(default_factory=dict)
    stored: bool = False

    def of(self, expr: q.Expr, written: str) -> q.Expr:
        """The query for points of this series: NEVER where none can match."""
        if isinstance(expr, (q.And, q.Or)):
            return joined(type(expr), [self.of(item, written) for item in expr.items])
        if isinstance(expr, q.Not):
            return negated(self.of(expr.item, written))
        if isinstance(expr, q.Spike):
            ids = self.hits.get(expr, {}).get(written, ())
            return records_of(ids, stored=self.stored) if ids else NEVER
        if isinstance(expr, (q.Contains, q.Matches)):
            return NEVER  # points have no text
        if isinstance(expr, q.Field):
            return self._field(expr, written)
        return expr

    def _field(self, term: q.Field, written: str) -> q.Expr:
        if term.key == "series":
            return q.Everything() if written in self.held[term] else NEVER
        if term.key == "kind":
            held = texts_hold(term, ["point"], self.regexes)[0]
            return q.Everything() if held else NEVER
        if term.key in q.BUILTIN_FIELDS:
            return term
        return self._value(term, written)

    def _value(self, term: q.Field, written: str) -> q.Expr:
        """A term on metadata, or on the value of a series of that name."""
        if term.key == written or folded(term.key) == folded(written):
            return replace(term, key=self.value_key(written))
        if is_metric(term.key):
            series = known(term.key).series
            if known(written).series != series:
                return NEVER  # another value of the same line
            factor = known(term.key).factor / known(written).factor
            return scaled(replace(term, key=self.value_key(written)), factor)
        return term


def records_of(ids: Iterable[str], *, stored: bool) -> q.Expr:
    """Lines by their ids, records of points by stream and place."""
    if not stored:
        return q.Field("id", ":", tuple(map(q.Exact, ids)))
    places: dict[str, list[q.Value]] = {}
    for one in ids:
        stream, _, seq = one.rpartition(":")
        places.setdefault(stream, []).append(q.Number(int(seq), seq))
    return any_of(
        all_of([q.Field("stream", ":", (q.Exact(stream),)), q.Field("seq", ":", tuple(found))])
        for stream, found in sorted(places.items())
    )


def scaled(term: q.Field, factor: float) -> q.Field:
    """The term in another unit: what it compares with, times `factor`."""
    if factor == 1.0:
        return term
    return replace(term, values=tuple(_scaled(value, factor) for value in term.values))


def _scaled(value: q.Value, factor: float) -> q.Value:
    if isinstance(value, q.Number):
        return q.Number(value.value * factor, repr(value.value * factor))
    if isinstance(value, q.Range):
        low, high = (None if end is None else end * factor for end in (value.low, value.high))
        return q.Range(low, high, value.inclusive)
    return value


def joined(kind: type[q.And] | type[q.Or], items: list[q.Expr]) -> q.Expr:
    """AND or OR without the terms that decide nothing."""
    decides, idle = (NEVER, q.Everything()) if kind is q.And else (q.Everything(), NEVER)
    if decides in items:
        return decides
    left = tuple(item for item in items if item != idle)
    if not left:
        return idle
    return left[0] if len(left) == 1 else kind(left)


def negated(item: q.Expr) -> q.Expr:
    """NOT of it."""
    if item == NEVER:
        return q.Everything()
    return NEVER if item == q.Everything() else q.Not(item)


def names_exactly(expr: q.Expr, written: str) -> bool:
    """Whether the query writes a name of this series out: then it is one, whatever it is."""
    if isinstance(expr, (q.And, q.Or)):
        return any(names_exactly(item, written) for item in expr.items)
    if isinstance(expr, q.Not):
        return names_exactly(expr.item, written)
    if isinstance(expr, q.Spike):
        return expr.series in names_of(written)
    if not isinstance(expr, q.Field):
        return False
    if expr.key != "series":
        return expr.key not in q.BUILTIN_FIELDS and expr.key in names_of(written)
    return any(isinstance(v, q.Exact) and v.text in names_of(written) for v in expr.values)
