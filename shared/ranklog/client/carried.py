"""Iterations of lines that name none: the last one known for their rank at their time.

A line of a host or kernel stream belongs to all ranks of its host, at the iteration each of them is in.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ranklog.client.spiked import not_looked_at
from ranklog.errors import BadQuery
from ranklog.layout import schema
from ranklog.merge.groups import GroupMerge
from ranklog.model import query as q
from ranklog.plan.near import scope_key
from ranklog.plan.overlap import union
from ranklog.plan.tree import all_of

if TYPE_CHECKING:
    from ranklog.client.joins import Match
    from ranklog.client.search import Search

# A step of a rank: from this time on its iteration is known to be this one.
Steps = dict[tuple[str, "int | None"], list[tuple[int, int]]]


class Carried:
    """Answers of one scope. What it costs (one scan) is only spent where some row names no iteration
    while others do."""

    def __init__(self, run: Search) -> None:
        self._run = run
        self._steps = _steps(run) if _has_unknown_iterations(run) else {}
        self._ranks: dict[tuple[str, str | None], set[int]] = {}
        for entry in run.scope.entries() if self._steps else ():
            own = {rank for rank, _ in entry.ranks if rank >= 0}
            own |= set() if entry.stream.rank is None else {entry.stream.rank}
            self._ranks.setdefault((entry.stream.run_id, entry.stream.host), set()).update(own)

    def places(self, match: Match) -> Iterable[tuple[Match, int]]:
        """The match with its iteration; of a host's line one for each of its ranks."""
        if match.iteration is not None:
            return [(match, match.iteration)]
        ranks: Iterable[int | None] = [match.rank]
        if match.rank is None:
            # a job of one process may have no rank: then its host's lines are its own
            ranks = sorted(self._ranks.get((match.run_id, match.host), ())) or [None]
        found = []
        for rank in ranks:
            iteration = _last(self._steps.get((match.run_id, rank), ()), match.ts_ns)
            if iteration is not None:
                found.append((match._replace(rank=rank), iteration))
        return found

    def steps(self, run_id: str, rank: int | None) -> list[tuple[int, int]]:
        """(time, iteration that the rank is in from then on), ascending."""
        return self._steps.get((run_id, rank), [])

    def near_set(self, scope: str, found: q.NearSet) -> q.NearSet | None:
        """The times at which a rank's last known iteration is in its intervals; None: never."""
        spans = dict(found.groups)
        if not self._steps or not spans:
            return None
        groups: dict[str, list[tuple[int, int]]] = {}
        for (run_id, host), ranks in self._ranks.items():
            for rank in ranks or (None,):
                key = scope_key(scope, run_id, host, rank)
                times = _times(self._steps.get((run_id, rank), []), spans.get(key, ()))
                groups.setdefault(scope_key("rank", run_id, host, rank), []).extend(times)
        merged = ((key, tuple(union(times))) for key, times in groups.items() if times)
        return q.NearSet("time", "rank", tuple(sorted(merged)))


def _times(
    steps: Sequence[tuple[int, int]], spans: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """When a rank was in one of the intervals of iterations."""
    if not spans:
        return []
    starts = [low for low, _ in spans]
    ends = [ts for ts, _ in steps[1:]] + [2**63 - 1]
    found = []
    for (ts, iteration), end in zip(steps, ends, strict=bool(steps)):
        at = bisect.bisect_right(starts, iteration) - 1
        if at >= 0 and iteration < spans[at][1]:
            found.append((ts, end))
    return found


def _last(steps: Sequence[tuple[int, int]], ts: int) -> int | None:
    """The last iteration known at this time."""
    at = bisect.bisect_right(steps, (ts, math.inf)) - 1
    return steps[at][1] if at >= 0 else None


def _has_unknown_iterations(run: Search) -> bool:
    """Whether some line in scope may have no iteration while others have one."""
    groups = [g for index in run.scope.indexes.values() for g in index.head.row_groups]
    bounds = [group.bounds.get(schema.ITERATION) for group in groups]
    known = any(bound is not None and bound.low is not None for bound in bounds)
    known = known or bool(run.scope.points)
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
    for key, found in _point_steps(run).items():
        steps.setdefault(key, []).extend(found)
    return {key: sorted(set(found)) for key, found in steps.items()}


def _point_steps(run: Search) -> Steps:
    """The same of points: telemetry often says where a rank is when its lines do not."""
    if not run.scope.points:
        return {}
    try:
        from ranklog.client.series_points import point_steps
    except ModuleNotFoundError as error:
        not_looked_at(run, error)
        return {}
    return point_steps(run)
