"""Answer the inner queries of near() and spike() first: what is left is a set that a scan can test."""

from __future__ import annotations

import bisect
import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ranklog import limits
from ranklog.client.lineage import resolve_superseded
from ranklog.errors import BadQuery
from ranklog.layout import schema
from ranklog.merge.groups import GroupMerge
from ranklog.merge.lines import FLOATS, LineMerge, line_rank
from ranklog.model import query as q
from ranklog.model.stream import Stream
from ranklog.plan.near import match_intervals, scope_key
from ranklog.plan.overlap import union
from ranklog.plan.spikes import spikes
from ranklog.plan.tasks import Lines
from ranklog.plan.tree import all_of

if TYPE_CHECKING:
    from ranklog.client.search import Search

# A step of a rank: from this time on its iteration is known to be this one.
Steps = dict[tuple[str, "int | None"], list[tuple[int, int]]]


def resolve_joins(run: Search, expr: q.Expr) -> q.Expr:
    """The tree with every Near, Spike and `superseded` answered. Raises BadQuery over NEAR_MATCHES_MAX."""
    if isinstance(expr, (q.And, q.Or)):
        return type(expr)(tuple(resolve_joins(run, item) for item in expr.items))
    if isinstance(expr, q.Not):
        return q.Not(resolve_joins(run, expr.item))
    if isinstance(expr, q.Near):
        return _resolve_near(run, expr)
    if isinstance(expr, q.Spike):
        return _resolve_spike(run, expr)
    if isinstance(expr, q.Field) and expr.key == "superseded":
        return resolve_superseded(run, expr)
    return expr


def _scan_keys(
    run: Search, expr: q.Expr, most: int, what: str, values: tuple[str, ...] = (), slack_ns: int = 0
) -> list[tuple[Any, ...]]:
    """(ts, stream_id, seq, stream, rank override, iteration, values…) of all matches."""
    inner = all_of([*_restriction(run, slack_ns), resolve_joins(run, expr)])
    shape = Lines(limit=most + 1, whole=False, values=values)
    merge = LineMerge(run.scope.indexes, limit=most + 1, newest=True)
    for wave in run.outcomes(run.plan(inner, shape)):
        for _, outcome in wave:
            merge.add(outcome)
    names = [schema.RANK, schema.ITERATION, *(f"value:{key}" for key in values)]
    rows = merge.rows(*names)
    if len(rows) > most:
        raise BadQuery(f"{what} has more than {most} matches", hint="narrow it, or bound the time")
    return rows


def _restriction(run: Search, slack_ns: int) -> list[q.Expr]:
    """The scope, a little wider in time: a match outside the bounds may have rows inside near it."""
    terms = run.scope.restriction()
    if not slack_ns:
        return terms
    listing = run.scope.listing
    low = None if listing.from_ns is None else max(0, listing.from_ns - slack_ns)
    high = None if listing.to_ns is None else listing.to_ns + slack_ns
    wide = q.Field("time", ":", (q.Range(low, high),))
    return [wide if isinstance(t, q.Field) and t.key == "time" else t for t in terms]


# --- near ---------------------------------------------------------------------------------------
def _resolve_near(run: Search, near: q.Near) -> q.Expr:
    slack = near.distance if near.axis == "time" else 0
    rows = _scan_keys(run, near.query, limits.NEAR_MATCHES_MAX, "the query in near()", (), slack)
    if near.axis == "time":
        return _near_set(near, [(row[3], line_rank(row[3].rank, row[4]), row[0]) for row in rows])
    steps = _steps(run) if _has_unknown_iterations(run) else {}
    matches = []
    for ts, _, _, stream, override, iteration in rows:
        rank = line_rank(stream.rank, override)
        if iteration is None:
            iteration = _carried(steps.get((stream.run_id, rank), ()), ts)
        if iteration is not None:
            matches.append((stream, rank, iteration))
    found = _near_set(near, matches)
    carried = _carried_set(run, near, found, steps)
    if carried is None:
        return found
    unknown = q.Field("iteration", ":", (q.Null(),))
    return q.Or((found, q.And((unknown, carried))))


def _near_set(near: q.Near, matches: Sequence[tuple[Stream, int | None, int]]) -> q.NearSet:
    groups: dict[str, list[int]] = {}
    for stream, rank, position in matches:
        groups.setdefault(scope_key(near.scope, stream, rank), []).append(position)
    intervals = {key: tuple(match_intervals(near, at)) for key, at in groups.items()}
    return q.NearSet(near.axis, near.scope, tuple(sorted(intervals.items())))


def _has_unknown_iterations(run: Search) -> bool:
    """Whether some line in scope may have no iteration while others have one."""
    groups = [g for index in run.scope.indexes.values() for g in index.head.row_groups]
    bounds = [group.bounds.get(schema.ITERATION) for group in groups]
    known = any(bound is not None and bound.low is not None for bound in bounds)
    return known and any(bound is None or bound.has_null for bound in bounds)


def _steps(run: Search) -> Steps:
    """Per run and rank, the time at which each iteration is first met, in order of time."""
    merge = GroupMerge(run.scope.indexes, ("run_id", "rank", "iteration"), extent=True)
    known = q.Field("iteration", ":", (q.Present(),))
    terms = [t for t in run.scope.restriction() if not (isinstance(t, q.Field) and t.key == "time")]
    try:
        for wave in run.outcomes(run.plan(all_of([*terms, known]), merge.shape)):
            for _, outcome in wave:
                merge.add(outcome)
    except BadQuery:
        run.report.notes.append("too many iterations: lines without one were not near any")
        return {}
    steps: Steps = {}
    for (run_id, rank, iteration), total in merge.groups.items():
        assert total.first_ns is not None
        steps.setdefault((run_id, rank), []).append((total.first_ns, iteration))
    return {key: sorted(found) for key, found in steps.items()}


def _carried(steps: Sequence[tuple[int, int]], ts: int) -> int | None:
    """The last iteration known at this time."""
    at = bisect.bisect_right(steps, (ts, math.inf)) - 1
    return steps[at][1] if at >= 0 else None


def _carried_set(run: Search, near: q.Near, found: q.NearSet, steps: Steps) -> q.NearSet | None:
    """The times at which a rank's last known iteration is in its intervals."""
    spans = dict(found.groups)
    if not steps or not spans:
        return None
    groups: dict[str, list[tuple[int, int]]] = {}
    for (run_id, rank), key in _rank_keys(run, near.scope):
        known = steps.get((run_id, rank), [])
        starts = [low for low, _ in spans.get(key, ())]
        ends = [ts for ts, _ in known[1:]] + [2**63 - 1]
        for (ts, iteration), end in zip(known, ends, strict=bool(known)):
            at = bisect.bisect_right(starts, iteration) - 1
            if at >= 0 and iteration < spans[key][at][1]:
                groups.setdefault(json.dumps([run_id, rank]), []).append((ts, end))
    merged = tuple(sorted((key, tuple(union(times))) for key, times in groups.items()))
    return q.NearSet("time", "rank", merged)


def _rank_keys(run: Search, scope: str) -> list[tuple[tuple[str, int], str]]:
    """Every (run, rank) in scope with the near group its lines belong to."""
    found: dict[tuple[tuple[str, int], str], None] = {}
    for entry in run.scope.entries():
        own = {rank for rank, _ in entry.ranks if rank >= 0} | {entry.stream.rank}
        for rank in own:
            if rank is not None:
                key = scope_key(scope, entry.stream, rank)
                found[(entry.stream.run_id, rank), key] = None
    return list(found)


# --- spike --------------------------------------------------------------------------------------
def _resolve_spike(run: Search, spike: q.Spike) -> q.Expr:
    """The lines whose value stands out of its own series: metadata key, run and rank."""
    there = q.Field(spike.series, ":", (q.Present(),))
    rows = _scan_keys(
        run,
        all_of([spike.where, there]),
        limits.SPIKE_VALUES_MAX,
        f"spike({spike.series})",
        (spike.series,),
    )
    series: dict[tuple[str, int | None], list[tuple[Any, ...]]] = {}
    for ts, stream_id, seq, stream, override, iteration, value in rows:
        if value is not None:
            number = FLOATS[value] if isinstance(value, str) else value
            place = (iteration if iteration is not None else -1, ts, stream_id, seq)
            key = (stream.run_id, line_rank(stream.rank, override))
            series.setdefault(key, []).append((place, number))
    ids = []
    for values in series.values():
        values.sort(key=lambda item: item[0])
        hits = spikes([number for _, number in values], spike.factor, ratio=spike.ratio)
        ids += [f"{values[i][0][2]}:{values[i][0][3]}" for i in hits]
    if len(ids) > limits.NEAR_MATCHES_MAX:
        raise BadQuery(f"spike({spike.series}) has more than {limits.NEAR_MATCHES_MAX} matches")
    if not ids:
        return q.Not(q.Everything())
    return q.Field("id", ":", tuple(q.Exact(item) for item in sorted(ids)))
