"""Answer the inner queries of near() and spike() first: what is left is a set that a scan can test.

A match is a row of the inner query, a line or a point: where it is (run, host, rank) and when
(iteration, time). Matches become intervals per group of rows, and the outer query tests them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ranklog import limits
from ranklog.client.carried import Carried
from ranklog.client.lineage import resolve_superseded
from ranklog.client.spiked import Hits, not_looked_at, refers_to_points, resolve_spike
from ranklog.errors import BadQuery
from ranklog.layout import schema
from ranklog.merge.lines import LineMerge, line_rank
from ranklog.model import query as q
from ranklog.plan.near import match_intervals, scope_key
from ranklog.plan.tasks import Lines
from ranklog.plan.tree import all_of

if TYPE_CHECKING:
    from ranklog.client.search import Search


class Match(NamedTuple):
    """Where and when a row of an inner query is."""

    run_id: str
    host: str | None
    rank: int | None
    iteration: int | None
    ts_ns: int


def resolve_joins(
    run: Search, expr: q.Expr, *, spikes: bool = True, hits: Hits | None = None
) -> q.Expr:
    """The tree with every Near, Spike and `superseded` answered; `spikes` False leaves those outside
    near() as they are. Raises BadQuery over NEAR_MATCHES_MAX."""
    hits = {} if hits is None else hits
    if isinstance(expr, (q.And, q.Or)):
        items = (resolve_joins(run, item, spikes=spikes, hits=hits) for item in expr.items)
        return type(expr)(tuple(items))
    if isinstance(expr, q.Not):
        return q.Not(resolve_joins(run, expr.item, spikes=spikes, hits=hits))
    if isinstance(expr, q.Near):
        return _resolve_near(run, expr, hits)
    if isinstance(expr, q.Spike) and spikes:
        return resolve_spike(run, expr, hits)
    if isinstance(expr, q.Field) and expr.key == "superseded":
        return resolve_superseded(run, expr)
    return expr


def _resolve_near(run: Search, near: q.Near, hits: Hits) -> q.Expr:
    slack = near.distance if near.axis == "time" else 0
    matches = _line_matches(run, near.query, slack, hits)
    if refers_to_points(near.query):
        matches += _point_matches(run, near.query, slack)
    if near.axis == "time":
        return _near_set(near, [(match, match.ts_ns) for match in matches])
    carried = Carried(run)
    found = _near_set(near, [place for match in matches for place in carried.places(match)])
    silent = carried.near_set(near.scope, found)
    if silent is None:
        return found
    unknown = q.Field("iteration", ":", (q.Null(),))
    return q.Or((found, q.And((unknown, silent))))


def _near_set(near: q.Near, places: Sequence[tuple[Match, int]]) -> q.NearSet:
    groups: dict[str, list[int]] = {}
    for match, position in places:
        key = scope_key(near.scope, match.run_id, match.host, match.rank)
        groups.setdefault(key, []).append(position)
    intervals = {key: tuple(match_intervals(near, at)) for key, at in groups.items()}
    return q.NearSet(near.axis, near.scope, tuple(sorted(intervals.items())))


def _line_matches(run: Search, expr: q.Expr, slack_ns: int, hits: Hits) -> list[Match]:
    asked = all_of([*restriction(run, slack_ns), resolve_joins(run, expr, hits=hits)])
    rows = scan_keys(run, asked, limits.NEAR_MATCHES_MAX, "the query in near()")
    return [
        Match(stream.run_id, stream.host, line_rank(stream.rank, override), iteration, ts)
        for ts, _, _, stream, override, iteration in rows
    ]


def _point_matches(run: Search, expr: q.Expr, slack_ns: int) -> list[Match]:
    """Of lines these are found by the names that series have, of points by any."""
    try:
        from ranklog.client.series_read import matches_of
    except ModuleNotFoundError as error:
        not_looked_at(run, error)
        return []
    return [Match(*row) for row in matches_of(run, expr, slack_ns)]


def scan_keys(
    run: Search, expr: q.Expr, most: int, what: str, values: tuple[str, ...] = ()
) -> list[tuple[Any, ...]]:
    """(ts, stream_id, seq, stream, rank override, iteration, values…) of all lines that match."""
    shape = Lines(limit=most + 1, whole=False, values=values)
    merge = LineMerge(run.scope.indexes, limit=most + 1, newest=True)
    for wave in run.outcomes(run.plan(expr, shape)):
        for _, outcome in wave:
            merge.add(outcome)
    names = [schema.RANK, schema.ITERATION, *(f"value:{key}" for key in values)]
    rows = merge.rows(*names)
    if len(rows) > most:
        raise BadQuery(f"{what} has more than {most} matches", hint="narrow it, or bound the time")
    return rows


def restriction(run: Search, slack_ns: int) -> list[q.Expr]:
    """The scope, a little wider in time: a match outside the bounds may have rows inside near it."""
    terms = run.scope.restriction()
    if not slack_ns:
        return terms
    listing = run.scope.listing
    low = None if listing.from_ns is None else max(0, listing.from_ns - slack_ns)
    high = None if listing.to_ns is None else listing.to_ns + slack_ns
    wide = q.Field("time", ":", (q.Range(low, high),))
    return [wide if isinstance(t, q.Field) and t.key == "time" else t for t in terms]
