"""`superseded`: which lines belong to iterations that were done again, told from indexes and few scans.

courses      passes of every stream of the launch, from its indexes         (plan/lineage)
marks        lines that say why iterations go back, where they do            one pruned scan
redone       from which iteration on each leg was done again                 (plan/lineage)
silent       where lines without an iteration lie among those of such        one pruned scan a cut

A launch that went straight through costs no scan.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from ranklog.client.scope import Scope, load_scope
from ranklog.merge.groups import GroupMerge
from ranklog.merge.lines import LineMerge
from ranklog.model import query as q
from ranklog.model.answer import Line, Report
from ranklog.plan.lineage import (
    RESTART_FLAGS,
    RESTART_PATTERN,
    Lineage,
    Mark,
    Redone,
    courses,
    lineage_of,
    may_be_redone,
)
from ranklog.plan.overlap import union
from ranklog.plan.scope import flag_holds
from ranklog.plan.tasks import Lines
from ranklog.plan.tree import all_of, any_of, children

if TYPE_CHECKING:
    from ranklog.client.search import Search

# Lines that may explain why iterations go back; of more the oldest.
_MARKS_MAX = 20_000

Spans: TypeAlias = "dict[str, list[tuple[int, int]]]"


@dataclass(slots=True)
class Superseded:
    """What is superseded in a launch. `seqs` and `times`: of which streams, lines without an iteration
    are, too, by place in the stream or, where the stream names no such iteration, by time."""

    lineage: Lineage
    seqs: Spans = field(default_factory=dict)
    times: Spans = field(default_factory=dict)

    def covers(self, line: Line) -> bool:
        """Whether the line is."""
        if line.iteration is None:
            spans, at = self.seqs.get(line.stream_id), line.seq
            if spans is None:
                spans, at = self.times.get(line.stream_id), line.ts_ns
            return any(low <= at < high for low, high in spans or ())
        return any(
            line.iteration >= one.cut and self._speaks_of(one, line) for one in self.lineage.redone
        )

    def _speaks_of(self, one: Redone, line: Line) -> bool:
        if one.stream_id is not None:
            return line.stream_id == one.stream_id and one.first <= line.seq < one.end
        return line.attempt == one.attempt and not (
            line.copy or line.stream_id in self.lineage.apart
        )

    def expr(self) -> q.Expr:
        """A tree that holds for its lines."""
        parts = [expr for _, expr in _of_iterations(self.lineage)]
        none = q.Field("iteration", ":", (q.Null(),))
        if self.seqs:
            parts.append(all_of([none, _spans_set("seq", self.seqs)]))
        if self.times:
            parts.append(all_of([none, _spans_set("time", self.times)]))
        return any_of(parts) if parts else q.Not(q.Everything())


def resolve_superseded(run: Search, term: q.Field) -> q.Expr:
    """A `superseded:` term as terms on attempts, streams and iterations."""
    holds, holds_not = flag_holds(term, True), flag_holds(term, False)
    if holds == holds_not:
        return q.Everything() if holds else q.Not(q.Everything())
    found = any_of([one.expr() for one in superseded_of(run)] or [q.Not(q.Everything())])
    return found if holds else q.Not(found)


def surviving() -> q.Field:
    """The term that analyses add: what later attempts did again is left out."""
    return q.Field("superseded", ":", (q.Exact("false"),))


def asks_for_superseded(expr: q.Expr) -> bool:
    """Whether a term of the tree is about it."""
    if isinstance(expr, q.Field) and expr.key == "superseded":
        return True
    return any(map(asks_for_superseded, children(expr)))


def mark_superseded(run: Search, lines: Sequence[Line]) -> list[Line]:
    """The lines, told which are. Bounds of time that cut a run cut what is known of it, unless the
    query asks."""
    if not lines:
        return []
    ids = {line.run_id for line in lines}
    whole = asks_for_superseded(run.query.expr)
    beside = replace(run, report=Report(), failed=[])  # what it costs is not the page's
    found = superseded_of(run, ids) if whole else _in_scope(beside, ids)
    run.failed += [item for item in beside.failed if item not in run.failed]
    run.report.bytes_read += beside.report.bytes_read
    by_run = {one.lineage.run_id: one for one in found}
    return [
        replace(line, superseded=True)
        if line.run_id in by_run and by_run[line.run_id].covers(line)
        else line
        for line in lines
    ]


def lineage_place(run: Search) -> tuple[str, ...]:
    """What an answer depends on beside its own scope: the indexes of the whole launches."""
    if not asks_for_superseded(run.query.expr):
        return ()
    return tuple(key for one in _launches(run) for key in one.scope.place)


def superseded_of(run: Search, run_ids: set[str] | None = None) -> list[Superseded]:
    """What is superseded in the launches in scope, all of each looked at, whatever the bounds."""
    found = []
    for one in _launches(run):
        if run_ids is None or one.scope.run_ids[0] in run_ids:
            found += _in_scope(one, set(one.scope.run_ids))
            run.failed += [item for item in one.failed if item not in run.failed]
            run.report.bytes_read += one.report.bytes_read
    return found


def _launches(run: Search) -> list[Search]:
    """A search of all of each launch in scope; a pinned one sees what it saw then."""
    if run.pinned:
        return [run]
    catalog = run.reader.catalog
    launches = run.scope.launches
    if launches is None:
        names = {(e.stream.run, e.stream.launch) for e in run.scope.entries()}
        chosen = (catalog.select(q.RunSelector(name, launch=at)) for name, at in sorted(names))
        launches = [launch for found in chosen for launch in found]
    searches = []
    for launch in launches:
        scope = load_scope(run.reader, [launch], catalog.list_launches([launch]))
        everything = q.Query(q.Everything(), full_scan=run.query.full_scan)
        searches.append(replace(run, query=everything, scope=scope, report=Report(), failed=[]))
    return searches


def _in_scope(run: Search, run_ids: Iterable[str]) -> list[Superseded]:
    """As the indexes in scope tell it; worked out once for the same indexes."""
    wanted = sorted(run_ids)
    place = ("superseded", tuple(wanted), run.query.full_scan, run.scope.place)
    known: list[Superseded] | None = run.reader.facts.get(place)
    if known is None and _went_straight(run.scope):
        known = []
        run.reader.facts.put(place, known)
    if known is None:
        launches = courses(run.scope.entries())
        known = [
            _superseded(run, run_id)
            for run_id in wanted
            if run_id in launches and may_be_redone(launches[run_id])
        ]
        known = [one for one in known if one.lineage.redone]
        if not run.failed:
            run.reader.facts.put(place, known)
    return known


def _went_straight(scope: Scope) -> bool:
    """Whether one look at each stream of each index says that nothing went back: nearly always. Where
    it is in doubt (indexes out of order, several attempts of several runs) it is not so."""
    highs: dict[str, int] = {}
    attempts = set()
    for index in scope.indexes.values():
        for entry in index.head.streams:
            if not entry.passes:
                continue
            if len(entry.passes) > 1 or entry.passes[0].first < highs.get(entry.stream_id, 0):
                return False
            highs[entry.stream_id] = entry.passes[0].high
            attempts.add(entry.stream.attempt)
    return len(attempts) < 2


def _superseded(run: Search, run_id: str) -> Superseded:
    known = courses(e for e in run.scope.entries() if e.stream.run_id == run_id)[run_id]
    found = Superseded(lineage_of(run_id, known, _marks(run, run_id)))
    if found.lineage.redone:
        _add_silent(run, found)
    return found


def _of_run(run_id: str) -> q.Expr:
    return q.Field("run_id", ":", (q.Exact(run_id),))


def _marks(run: Search, run_id: str) -> list[Mark]:
    """Where the launch says that it loads a checkpoint, or starts."""
    expr = all_of([_of_run(run_id), q.Matches(RESTART_PATTERN, RESTART_FLAGS)])
    merge = LineMerge(run.scope.indexes, limit=_MARKS_MAX, newest=False)
    shape = Lines(limit=_MARKS_MAX, newest=False, whole=False)
    for wave in run.outcomes(run.plan(expr, shape)):
        for _, outcome in wave:
            merge.add(outcome)
    return [Mark(stream_id, stream.attempt, seq, ts) for ts, stream_id, seq, stream in merge.rows()]


def _of_iterations(lineage: Lineage) -> list[tuple[Sequence[Redone], q.Expr]]:
    """Lines that name superseded iterations, by what can be asked at once: legs of one cut."""
    legs: dict[tuple[int, int], list[Redone]] = {}
    for one in lineage.redone:
        legs.setdefault((one.cut, -1 if one.stream_id is None else one.leg), []).append(one)
    found: list[tuple[Sequence[Redone], q.Expr]] = []
    for (cut, leg), redone in legs.items():
        named = q.Field("iteration", ">=", (q.Number(cut, str(cut)),))
        if leg < 0:
            attempts = tuple(q.Number(one.attempt, str(one.attempt)) for one in redone)
            terms = [q.Field("attempt", ":", attempts), _own(lineage)]
        else:
            spans: Spans = {}
            for one in redone:
                spans.setdefault(one.stream_id or "", []).append((one.first, one.end))
            terms = [_spans_set("seq", spans)]
        found.append((redone, all_of([_of_run(lineage.run_id), named, *terms])))
    return found


def _own(lineage: Lineage) -> q.Expr:
    """Streams that an attempt speaks for."""
    terms: list[q.Expr] = [q.Field("copy", ":", (q.Exact("false"),))]
    if lineage.apart:
        names = tuple(q.Exact(name) for name in sorted(lineage.apart))
        terms.append(q.Not(q.Field("stream", ":", names)))
    return all_of(terms)


def _spans_set(axis: str, spans: Spans) -> q.NearSet:
    groups = ((json.dumps([stream]), tuple(union(found))) for stream, found in spans.items())
    return q.NearSet(axis, "stream", tuple(sorted(groups)))


def _add_silent(run: Search, found: Superseded) -> None:
    """Where lines without an iteration lie: between the first and the last superseded line of their
    stream, or at the times of its rank's, or, where that names none, of its attempt's."""
    streams = {
        e.stream_id: e.stream
        for e in run.scope.entries()
        if e.stream.run_id == found.lineage.run_id
    }
    by_rank: dict[tuple[int, int | None], list[tuple[int, int]]] = {}
    by_attempt: dict[int, list[tuple[int, int]]] = {}
    for _, expr in _of_iterations(found.lineage):
        merge = GroupMerge(run.scope.indexes, ("stream",), extent=True, seqs=True)
        for wave in run.outcomes(run.plan(expr, merge.shape)):
            for _, outcome in wave:
                merge.add(outcome)
        for (stream_id,), total in merge.groups.items():
            assert total.first_seq is not None and total.last_seq is not None
            assert total.first_ns is not None and total.last_ns is not None
            found.seqs.setdefault(stream_id, []).append((total.first_seq, total.last_seq + 1))
            stream, times = streams[stream_id], (total.first_ns, total.last_ns + 1)
            by_attempt.setdefault(stream.attempt, []).append(times)
            by_rank.setdefault((stream.attempt, stream.rank), []).append(times)
    for stream_id, stream in streams.items():
        if stream_id not in found.seqs and not stream.copy:
            own = by_rank.get((stream.attempt, stream.rank)) or by_attempt.get(stream.attempt)
            if own:
                found.times[stream_id] = union(own)
