"""What happened to a run: fetch lines that speak of it by few queries, let spmd judge them.

evidence   lines of level ERROR, or with words of the rules; the newest ones up to a limit
steps      lines that name an iteration, and points of losses and times; the newest ones up to a limit
dumps      lines of stack dumps and flight recorders; the newest ones up to a limit
ranks      first and last time, lines, ends, heartbeats: from indexes, and by a count where a console
           holds several ranks
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ranklog import limits
from ranklog.answer.runs import StreamSum, sum_streams
from ranklog.client.point_lines import CHANNEL
from ranklog.client.reader import Reader
from ranklog.client.search import Search, begin, scan_lines
from ranklog.client.topology import topology_of
from ranklog.client.triage_answer import Triage
from ranklog.client.triage_rows import answer_of
from ranklog.client.words import Restrictions, read_query
from ranklog.errors import BadInput, BadQuery, NotFound
from ranklog.merge.groups import GroupMerge
from ranklog.model import query as q
from ranklog.model.answer import Line
from ranklog.model.levels import ERROR
from ranklog.plan.tree import all_of, any_of
from ranklog.spmd.stacks import DUMP_LINES
from ranklog.spmd.triage.case import Case, RankState
from ranklog.spmd.triage.evidence import evidence_pattern
from ranklog.spmd.triage.series import is_value
from ranklog.spmd.triage.suspects import name_group
from ranklog.spmd.triage.verdict import Verdict, judge

_FRAME = '  File "'


def triage_run(reader: Reader, query: str, given: Restrictions) -> Triage:
    """One launch. `attempt`: an earlier one than the last. Raises BadInput without a run."""
    if not given.get("run"):
        raise BadInput("triage of which run?", hint="name it: run=… or --run NAME")
    words: Restrictions = {**given, "attempt": None}
    run = begin(reader, read_query(query, words, now_ns=reader.now_ns()), points=True)
    if len(run.scope.run_ids) != 1:  # none: a term on runs, and no run
        raise BadInput(
            f"{len(run.scope.run_ids) or 'all'} launches",
            hint="triage takes one: NAME, NAME@LAUNCH, NAME~1",
        )
    sums = sum_streams(run.scope.entries(), gone=run.scope.gone())
    attempts = sorted({item.stream.attempt for item in sums}) or [0]
    attempt = _chosen(given.get("attempt"), attempts)
    newest = attempt == attempts[-1]
    case = fetch_case(run, sums, attempt, newest=newest)
    verdict = judge(case)
    _name_groups(run, sums, attempt, verdict)
    return answer_of(run, case, attempt, verdict, newest=newest)


def _chosen(wanted: str | int | None, attempts: Sequence[int]) -> int:
    if wanted is None or wanted == "":
        return attempts[-1]
    if not str(wanted).isdecimal():
        raise BadInput(f"attempt {wanted!r}", hint="one attempt: --attempt 0")
    if int(wanted) not in attempts:
        raise NotFound(f"no attempt {wanted}", hint=f"it has {', '.join(map(str, attempts))}")
    return int(wanted)


def fetch_case(run: Search, sums: Sequence[StreamSum], attempt: int, *, newest: bool) -> Case:
    """What the judge needs of an attempt."""
    # of a console that repeats per-rank files only what the launcher says
    copies = all_of(
        [q.Field("copy", ":", (q.Exact("true"),)), q.Field("rank", ":", (q.Present(),))]
    )
    scope = all_of([run.expr(), q.Not(copies), *_of_attempt(attempt, newest=newest)])
    evidence = _newest(run, all_of([scope, evidence_term()]), limits.TRIAGE_EVIDENCE_MAX)
    steps = _newest(run, all_of([scope, steps_term()]), limits.TRIAGE_STEPS_MAX)
    own = [item for item in sums if item.stream.attempt == attempt and not item.stream.copy]
    ranks = _rank_states(own)
    if any(rank >= 0 for item in own for entry in item.entries for rank, _ in entry.ranks):
        _add_labelled(run, scope, ranks)
    points = _points(run, attempt)
    dumps = _newest(run, all_of([scope, dumps_term()]), limits.TRIAGE_DUMPS_MAX)
    for line in sorted((*evidence, *steps, *points), key=lambda line: (line.ts_ns, line.seq)):
        _add_line(ranks, line)
    live = newest and any(item.end is None for item in own)
    last = max((item.last_ns or 0 for item in own), default=0)
    return Case(
        evidence=evidence,
        steps=sorted((*steps, *points), key=_by_time) if points else steps,
        dumps=dumps,
        ranks=ranks,
        world_size=max((item.stream.world_size or 0 for item in own), default=0) or None,
        last_ns=last,
        now_ns=run.reader.now_ns() if live else last,
        live=live,
        own_streams=_own_streams(sums),
        stream_lines={i.stream_id: max((b for _, b in i.ranges), default=0) for i in sums},
        stream_hosts={i.stream_id: i.stream.host for i in sums if i.stream.host is not None},
    )


def _name_groups(run: Search, sums: Sequence[StreamSum], attempt: int, verdict: Verdict) -> None:
    """Where several ranks are suspected: manifests and start lines tell what they have in common."""
    several = [s for s in verdict.suspects if isinstance(s.ranks, frozenset) and not s.node]
    if not several or verdict.facts is None:
        return
    own = [item for item in sums if item.stream.attempt == attempt]
    facts = verdict.facts
    topology = topology_of(run, own, facts.ranks, whole=False, hosts=facts.places.hosts)
    for suspect in several:
        name_group(suspect, topology)


def _of_attempt(attempt: int, *, newest: bool) -> list[q.Expr]:
    """An earlier attempt's own lines, and what no rank says. The newest one is told apart by time,
    too: files of several attempts have no number of theirs."""
    if newest:
        return []
    number = q.Field("attempt", ":", (q.Number(attempt, str(attempt)),))
    nobodys = all_of([q.Field(key, ":", (q.Null(),)) for key in ("rank", "local_rank")])
    return [any_of([number, nobodys])]


def evidence_term() -> q.Expr:
    """Lines that a rule might hold for."""
    errors = q.Field("level", ">=", (q.Number(ERROR, "ERROR"),))
    frames = q.Not(q.Contains(_FRAME))
    return any_of([all_of([errors, frames]), q.Matches(evidence_pattern())])


def dumps_term() -> q.Expr:
    """Lines of stack dumps and of flight recorders."""
    return any_of([q.Matches(DUMP_LINES), q.Field("flight", ":", (q.Present(),))])


def steps_term() -> q.Expr:
    """Lines that count iterations, bars beside a loss too."""
    bars = all_of([q.Field("bar_at", ":", (q.Present(),)), q.Field("loss", ":", (q.Present(),))])
    return any_of([q.Field("iteration", ":", (q.Present(),)), bars])


def _points(run: Search, attempt: int) -> list[Line]:
    """Losses, and times of ranks, that are telemetry; none where the question is about text, or where
    there are no arrays to read them with."""
    if not run.scope.points:
        return []
    try:
        from ranklog.client.telling_points import telling_points
    except ImportError:
        run.report.notes.append("points were left out: they need numpy and Arrow, ask the store")
        return []
    try:
        return telling_points(run, is_value, attempt)
    except BadQuery as error:
        run.report.notes.append(f"points were left out: {error.message}")
        return []


def _newest(run: Search, expr: q.Expr, most: int) -> list[Line]:
    """In order of time. A cut is said."""
    lines = scan_lines(run, expr, limit=most + 1, newest=True).lines()
    if len(lines) > most:
        run.report.notes.append(f"of more lines than {most} that speak of it, the newest were read")
    return sorted(lines[:most], key=_by_time)


def _by_time(line: Line) -> tuple[int, str, int]:
    return line.ts_ns, line.stream_id, line.seq


def _rank_states(sums: Iterable[StreamSum]) -> dict[int, RankState]:
    ranks: dict[int, RankState] = {}
    for item in sums:
        rank = item.stream.rank
        if rank is None:
            continue
        state = ranks.setdefault(rank, RankState(rank))
        state.host = state.host or item.stream.host
        state.lines += item.lines
        state.first_ns = _least(state.first_ns, item.first_ns)
        state.last_ns = _most(state.last_ns, item.last_ns)
        state.alive_ns = _most(state.alive_ns, *(entry.alive_ns for entry in item.entries))
        if item.end is not None:
            state.ended = True
            code = item.end.exit_code
            state.exit_code = code if state.exit_code in (None, 0) else state.exit_code
    return ranks


def _add_labelled(run: Search, scope: q.Expr, ranks: dict[int, RankState]) -> None:
    """Ranks that speak in consoles: who, from when to when."""
    merge = GroupMerge(run.scope.indexes, ("rank",), extent=True)
    labelled = all_of([scope, q.Field("rank", ":", (q.Present(),))])
    for wave in run.outcomes(run.plan(labelled, merge.shape)):
        for _, outcome in wave:
            merge.add(outcome)
    for (rank,), total in merge.groups.items():
        if rank is None:
            continue
        state = ranks.setdefault(rank, RankState(rank))
        state.lines = max(state.lines, total.count)
        state.first_ns = _least(state.first_ns, total.first_ns)
        state.last_ns = _most(state.last_ns, total.last_ns)


def _add_line(ranks: dict[int, RankState], line: Line) -> None:
    if line.rank is None:
        return
    state = ranks.setdefault(line.rank, RankState(line.rank))
    if line.iteration is not None and line.text.strip():
        state.last_iteration = line.iteration
        if line.channel != CHANNEL:
            state.last_line = line


def _own_streams(sums: Iterable[StreamSum]) -> frozenset[str]:
    streams = ((item.stream_id, item.stream) for item in sums)
    return frozenset(
        name for name, stream in streams if stream.rank is not None or stream.local_rank is not None
    )


def _least(*values: int | None) -> int | None:
    return min((value for value in values if value is not None), default=None)


def _most(*values: int | None) -> int | None:
    return max((value for value in values if value is not None), default=None)
