"""Which records a spike() is in, and which queries are about points at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from ranklog import limits
from ranklog.errors import BadQuery
from ranklog.merge.lines import FLOATS, line_rank
from ranklog.model import query as q
from ranklog.plan.spikes import spikes
from ranklog.plan.tree import all_of, any_of, children

if TYPE_CHECKING:
    from ranklog.client.search import Search

# Ids of the records that a spike is in, by written name of the series.
SpikeIds: TypeAlias = "dict[str, tuple[str, ...]]"
Hits: TypeAlias = "dict[q.Spike, SpikeIds]"


def refers_to_points(expr: q.Expr) -> bool:
    """Whether a tree has a term that points can fulfil: a spike, a series, a value or dimension of one."""
    if isinstance(expr, q.Spike):
        return True
    if isinstance(expr, q.Field):
        return expr.key in ("series", "kind") or expr.key not in q.BUILTIN_FIELDS
    if isinstance(expr, q.Near):
        return False  # answered by itself
    return any(map(refers_to_points, children(expr)))


def joins_points(expr: q.Expr) -> bool:
    """Whether a query of lines has to look at points, too."""
    if isinstance(expr, (q.Near, q.Spike)):
        return True
    return any(map(joins_points, children(expr)))


def not_looked_at(run: Search, error: ModuleNotFoundError) -> None:
    """Who has no numpy is told: points that are there make the answer partial."""
    why = f"{error.name} is not installed here: points were not looked at"
    if run.scope.points:
        keys = [index.key for index in run.scope.points.values()]
        run.failed += [{"segment": key, "reason": why} for key in keys]
    elif why not in run.report.notes:
        run.report.notes.append(why)


def resolve_spike(run: Search, spike: q.Spike, hits: Hits) -> q.Expr:
    """The lines whose value stands out of its own series; of a query for points, the points."""
    found_ids = spike_ids(run, spike, hits)
    if run.query.kind == "point":
        return _points_of(found_ids)
    ids = sorted({one for found in found_ids.values() for one in found})
    if len(ids) > limits.NEAR_MATCHES_MAX:
        raise BadQuery(f"spike({spike.series}) has more than {limits.NEAR_MATCHES_MAX} matches")
    if not ids:
        return q.Not(q.Everything())
    return q.Field("id", ":", tuple(q.Exact(item) for item in ids))


def _points_of(found: SpikeIds) -> q.Expr:
    from ranklog.client.series_terms import records_of

    each = [
        all_of(
            [q.Field("series", ":", (q.Exact(name, quoted=True),)), records_of(ids, stored=True)]
        )
        for name, ids in sorted(found.items())
    ]
    return any_of(each) if each else q.Not(q.Everything())


def spike_ids(run: Search, spike: q.Spike, hits: Hits) -> SpikeIds:
    """Found once for a query."""
    if spike not in hits:
        try:
            from ranklog.client.series_read import spike_ids_of
        except ModuleNotFoundError as error:
            not_looked_at(run, error)
            hits[spike] = _ids_without_numpy(run, spike)
        else:
            hits[spike] = spike_ids_of(run, spike)
    return hits[spike]


def _ids_without_numpy(run: Search, spike: q.Spike) -> SpikeIds:
    """The same of lines whose metadata has the very name: run and rank are what a series is of."""
    from ranklog.client.joins import resolve_joins, restriction, scan_keys

    there = q.Field(spike.series, ":", (q.Present(),))
    asked = all_of([*restriction(run, 0), resolve_joins(run, spike.where), there])
    what = f"spike({spike.series})"
    rows = scan_keys(run, asked, limits.SPIKE_VALUES_MAX, what, (spike.series,))
    series: dict[tuple[str, int | None], list[tuple[Any, ...]]] = {}
    for ts, stream_id, seq, stream, override, iteration, value in rows:
        if value is not None:
            number = FLOATS[value] if isinstance(value, str) else value
            place = (stream.attempt, iteration if iteration is not None else -1, ts, seq)
            key = (stream.run_id, line_rank(stream.rank, override))
            series.setdefault(key, []).append((place, f"{stream_id}:{seq}", number))
    ids: list[str] = []
    for values in series.values():
        values.sort()
        found = spikes([value for _, _, value in values], spike.factor, ratio=spike.ratio)
        ids += [values[i][1] for i in found]
    return {spike.series: tuple(ids)}
