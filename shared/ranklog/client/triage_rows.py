"""A verdict as the JSON of an answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ranklog.answer.render import line_json, render_time
from ranklog.client.search import Search
from ranklog.client.triage_answer import Triage
from ranklog.spmd.triage.case import Case
from ranklog.spmd.triage.heat import Heat, anomaly_heat
from ranklog.spmd.triage.saves import last_checkpoint
from ranklog.spmd.triage.steps import Shown, Step, next_steps
from ranklog.spmd.triage.suspects import Suspect
from ranklog.spmd.triage.timeline import Event, make_timeline
from ranklog.spmd.triage.verdict import Verdict

_SUSPECT_LINES = 6


def answer_of(run: Search, case: Case, attempt: int, verdict: Verdict, *, newest: bool) -> Triage:
    """The page of a judged case. `newest`: whether it is the last attempt."""
    facts = verdict.facts
    assert facts is not None
    completeness = run.completeness()
    gaps = {gap["rank"] for gap in completeness.gaps if gap.get("rank") is not None}
    named = {s.rank for s in verdict.suspects if s.rank is not None}
    named |= {r for s in verdict.suspects if isinstance(s.ranks, frozenset) for r in s.ranks}
    run_id = run.scope.run_ids[0]
    checkpoint = last_checkpoint(facts.signs)
    shown = _shown(case, verdict, None if newest else attempt)
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
        "next_steps": [
            _step(step) for step in next_steps(verdict.fault, run_id, verdict.suspects, shown)
        ],
    }
    return Triage(result, completeness, run.report)


def _shown(case: Case, verdict: Verdict, attempt: int | None) -> Shown:
    """What commands of next steps can show."""
    lines = [*verdict.lines, *(line for suspect in verdict.suspects for line in suspect.lines)]
    series = verdict.series
    if series is not None and not any(series in line.metadata for line in lines):
        series = None  # the number stands in the text alone
    return Shown(
        lines,
        [rank for rank, state in case.ranks.items() if state.last_ns is not None],
        frozenset(case.stream_hosts.values()),
        series,
        any(line.rank is not None and "flight" not in line.metadata for line in case.dumps),
        attempt,
    )


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
