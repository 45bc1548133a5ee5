"""What happened to a run: fetch lines that speak of it by few queries, let spmd judge them.

evidence   lines of level ERROR, or with words of the rules; the newest ones up to a limit
steps      lines that name an iteration; the newest ones up to a limit
ranks      first and last time, lines, ends, heartbeats: from indexes, and by a count where a console
           holds several ranks
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from ranklog import limits
from ranklog.answer.render import line_json, render_time
from ranklog.answer.runs import StreamSum, sum_streams
from ranklog.client.reader import Reader
from ranklog.client.search import Search, begin, scan_lines
from ranklog.client.topology import topology_of
from ranklog.client.triage_answer import Triage
from ranklog.client.words import Restrictions, read_query
from ranklog.errors import BadInput, NotFound
from ranklog.merge.groups import GroupMerge
from ranklog.model import query as q
from ranklog.model.answer import Line
from ranklog.model.levels import ERROR
from ranklog.plan.tree import all_of, any_of
from ranklog.spmd.triage.case import Case, RankState
from ranklog.spmd.triage.evidence import evidence_pattern
from ranklog.spmd.triage.heat import Heat, anomaly_heat
from ranklog.spmd.triage.saves import last_checkpoint
from ranklog.spmd.triage.steps import Step, next_steps
from ranklog.spmd.triage.suspects import Suspect, name_group
from ranklog.spmd.triage.timeline import Event, make_timeline
from ranklog.spmd.triage.verdict import Verdict, judge

_FRAME = '  File "'
_SUSPECT_LINES = 6


def triage_run(reader: Reader, query: str, given: Restrictions) -> Triage:
    """One launch. `attempt`: an earlier one than the last. Raises BadInput without a run."""
    if not given.get("run"):
        raise BadInput("triage of which run?", hint="name it: run=… or --run NAME")
    words: Restrictions = {**given, "attempt": None}
    run = begin(reader, read_query(query, words, now_ns=reader.now_ns()), points=True)
    if len(run.scope.run_ids) > 1:
        raise BadInput(
            f"{len(run.scope.run_ids)} launches", hint="triage takes one: NAME, NAME@LAUNCH, NAME~1"
        )
    sums = sum_streams(run.scope.entries(), gone=run.scope.gone())
    attempts = sorted({item.stream.attempt for item in sums}) or [0]
    attempt = _chosen(given.get("attempt"), attempts)
    case = fetch_case(run, sums, attempt, newest=attempt == attempts[-1])
    verdict = judge(case)
    _name_groups(run, sums, attempt, verdict)
    return _answer(run, case, attempt, verdict)


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
    for line in sorted((*evidence, *steps), key=lambda line: (line.ts_ns, line.seq)):
        _add_line(ranks, line)
    live = newest and any(item.end is None for item in own)
    last = max((item.last_ns or 0 for item in own), default=0)
    return Case(
        evidence=evidence,
        steps=steps,
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


def steps_term() -> q.Expr:
    """Lines that count iterations, bars beside a loss too."""
    bars = all_of([q.Field("bar_at", ":", (q.Present(),)), q.Field("loss", ":", (q.Present(),))])
    return any_of([q.Field("iteration", ":", (q.Present(),)), bars])


def _newest(run: Search, expr: q.Expr, most: int) -> list[Line]:
    """In order of time. A cut is said."""
    lines = scan_lines(run, expr, limit=most + 1, newest=True).lines()
    if len(lines) > most:
        run.report.notes.append(f"of more lines than {most} that speak of it, the newest were read")
    return sorted(lines[:most], key=lambda line: (line.ts_ns, line.stream_id, line.seq))


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


# --- the answer -----------------------------------------------------------------------------------
def _answer(run: Search, case: Case, attempt: int, verdict: Verdict) -> Triage:
    facts = verdict.facts
    assert facts is not None
    completeness = run.completeness()
    gaps = {gap["rank"] for gap in completeness.gaps if gap.get("rank") is not None}
    named = {s.rank for s in verdict.suspects if s.rank is not None}
    named |= {r for s in verdict.suspects if isinstance(s.ranks, frozenset) for r in s.ranks}
    run_id = run.scope.run_ids[0]
    checkpoint = last_checkpoint(facts.signs)
    result: dict[str, Any] = {
        "run": run_id,
        "attempt": attempt,
        "class": verdict.fault,
        "undecidable": verdict.undecidable,
        "why": verdict.why or None,
        "live": case.live,
        "suspects": [_suspect(suspect) for suspect in verdict.suspects],
        "evidence": [line_json(line) for line in list(verdict.lines)[:_SUSPECT_LINES]],
        "timeline": [_event(event) for event in make_timeline(facts, named, gaps)],
        "heat": _heat(anomaly_heat(facts, verdict.values, named)),
        "last_iteration": facts.progress.last_iteration,
        "last_checkpoint": None
        if checkpoint is None
        else {"iteration": checkpoint.iteration, "complete": checkpoint.complete},
        "next_steps": [_step(s) for s in next_steps(verdict.fault, run_id, verdict.suspects)],
    }
    return Triage(result, completeness, run.report)


def _suspect(suspect: Suspect) -> dict[str, Any]:
    ranks = suspect.ranks
    return {
        "rank": suspect.rank,
        "ranks": sorted(ranks) if isinstance(ranks, frozenset) else ranks,
        "host": suspect.host,
        "group": _group(suspect),
        "exceptions": [] if suspect.group is None else list(suspect.group.exceptions),
        "others": [] if suspect.group is None else list(suspect.group.others),
        "name": suspect.name,
        "score": round(suspect.score, 3),
        "why": suspect.why,
        "evidence": [
            line_json(replace(line, match=True)) for line in list(suspect.lines)[:_SUSPECT_LINES]
        ],
    }


def _group(suspect: Suspect) -> str | None:
    if suspect.node:
        return "node"
    if suspect.ranks == "all":
        return "all"
    return None if suspect.group is None else suspect.group.name


def _event(event: Event) -> dict[str, Any]:
    return {
        "ts_ns": event.ts_ns,
        "time": render_time(event.ts_ns),
        "iteration": event.iteration,
        "rank": event.rank,
        "event": event.event,
        "note": event.note or None,
        "line": None if event.line is None else line_json(event.line),
    }


def _heat(heat: Heat | None) -> dict[str, Any] | None:
    if heat is None:
        return None
    rows = [
        {
            "ranks": list(row.ranks),
            "suspect": row.suspect,
            "errors": row.errors,
            "odd": row.odd,
            "silent_from": row.silent_from,
        }
        for row in heat.rows
    ]
    return {"from_ns": heat.from_ns, "to_ns": heat.to_ns, "rows": rows}


def _step(step: Step) -> dict[str, Any]:
    return {"text": step.text, "command": step.command, "runbook": step.runbook}
