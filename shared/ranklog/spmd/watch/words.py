"""What an alert says, how bad it is, the query that shows it, and the page that helps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ranklog.limits import SECOND_NS
from ranklog.spmd.triage.series import is_loss
from ranklog.spmd.triage.steps import query_of
from ranklog.spmd.watch.alerts import Condition, Notice

CRITICAL, WARNING = "critical", "warning"
# Stretches of ranks in a query; more are left out, as a query has a limit.
_STRETCHES_MAX = 24
_SEVERE = {"stalled": CRITICAL, "exit": CRITICAL, "error": CRITICAL}
_RUNBOOKS = {
    "stalled": "hang",
    "silent": "hang",
    "lagging": "hang",
    "nan": "numeric",
    "slow": "slow",
    "exit": "unknown",
}
_VERDICTS = {
    "silent": "silent, its process still lives or nothing says otherwise",
    "gone": "gone, no heartbeat of its process comes either",
    "late": "late, lines of it are known to be on their way",
}


def tell(state: str, conditions: Sequence[Condition], now_ns: int) -> Notice:
    """One alert of conditions that began, or ended, together. They are of one kind and verdict."""
    first = conditions[0]
    ranks = tuple(sorted({rank for condition in conditions for rank in condition.ranks}))
    since = min(condition.since_ns for condition in conditions)
    said = _fired(first, conditions, ranks, now_ns)
    if state == "resolved":
        said = f"{_resolved(first, ranks)}, after {span(now_ns - since)}"
    fault = first.subject if first.kind == "error" else ""
    return Notice(
        state=state,
        kind=first.kind,
        verdict=first.verdict,
        severity=_severity(first),
        subjects=tuple(condition.subject for condition in conditions),
        ranks=ranks,
        ts_ns=now_ns,
        since_ns=since,
        message=said,
        query=_query(first, ranks),
        runbook=f"docs/runbooks/{fault or _RUNBOOKS[first.kind]}.md",
        facts=first.facts,
    )


def _severity(first: Condition) -> str:
    if first.kind == "nan":
        return CRITICAL if is_loss(first.subject) else WARNING
    return CRITICAL if first.verdict == "gone" else _SEVERE.get(first.kind, WARNING)


def _fired(
    first: Condition, conditions: Sequence[Condition], ranks: Sequence[int], now_ns: int
) -> str:
    facts = first.facts
    if first.kind == "stalled":
        return _stalled(facts, now_ns - first.since_ns)
    if first.kind == "silent":
        where = _on(conditions)
        longest = span(max(condition.facts["for_ns"] for condition in conditions))
        return f"{_whose(ranks)}{where} said nothing for {longest}: {_VERDICTS[first.verdict]}"
    if first.kind == "lagging":
        most = max(condition.facts["behind"] for condition in conditions)
        iterations = "1 iteration" if most == 1 else f"{most} iterations"
        return f"{_whose(ranks)}{_on(conditions)} is {iterations} behind the run"
    if first.kind == "nan":
        at = "" if facts["iteration"] is None else f" since iteration {facts['iteration']}"
        who = f" on {_whose(ranks)}" if ranks else ""
        return f"{first.subject} is not finite{at}{who}"
    if first.kind == "slow":
        usual, now = span(int(facts["usual_ns"])), span(int(facts["now_ns"]))
        return f"an iteration takes {now}, and usually took {usual}"
    if first.kind == "exit":
        codes = sorted({condition.facts["exit_code"] for condition in conditions})
        return f"{_whose(ranks)}{_on(conditions)} ended with code {', '.join(map(str, codes))}"
    who = f" on {_whose(ranks)}" if ranks else f" on {facts['host']}" if facts["host"] else ""
    return f"{first.subject}{who}, and the run does not go on: {facts['text'].strip()}"


def _stalled(facts: dict[str, Any], for_ns: int) -> str:
    if facts["iteration"] is None:
        return f"no iteration yet, and no line for {span(for_ns)}"
    usual = facts["usual_ns"]
    pace = "" if usual is None else f", usually one comes every {span(int(usual))}"
    return f"no new iteration for {span(for_ns)}: the last is {facts['iteration']}{pace}"


def _resolved(first: Condition, ranks: Sequence[int]) -> str:
    ended = {
        "stalled": "the run goes on",
        "silent": f"{_whose(ranks)} speaks again",
        "lagging": f"{_whose(ranks)} caught up",
        "nan": f"{first.subject} is finite again",
        "slow": "iterations take as long as before",
        "error": f"the run went on after {first.subject}",
        "exit": "another attempt began",
    }
    return "the run ended" if first.facts.get("run_ended") else ended[first.kind]


def _query(first: Condition, ranks: Sequence[int]) -> str:
    """What shows it: text of the query language."""
    whose = f"rank:{rank_list(ranks)}" if ranks else ""
    facts = first.facts
    if first.kind == "nan":
        name = first.subject
        key = name if re.fullmatch(r"[A-Za-z][\w.\-/]*", name) else None
        if facts.get("points"):
            return f'kind:point series:"{name}" value:NaN,Inf,-Inf'
        return f"{key}:NaN,Inf,-Inf" if key else f'"{name}"'
    if first.kind == "error":
        return query_of(first.subject)
    if first.kind == "exit":
        return f"level>=ERROR {whose}"
    if first.kind in ("stalled", "slow"):
        at = facts["iteration"]
        return "*" if at is None else f"iteration>={at}"
    return whose or "*"


def rank_list(ranks: Sequence[int]) -> str:
    """`0-7,9`, as queries take it; of more than 24 stretches the first."""
    parts: list[list[int]] = []
    for rank in ranks:
        if parts and rank == parts[-1][1] + 1:
            parts[-1][1] = rank
        else:
            parts.append([rank, rank])
    shown = (str(a) if a == b else f"{a}-{b}" for a, b in parts[:_STRETCHES_MAX])
    return ",".join(shown)


def _whose(ranks: Sequence[int]) -> str:
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    return f"each of {len(ranks)} ranks ({rank_list(ranks)})"


def _on(conditions: Sequence[Condition]) -> str:
    hosts = sorted({condition.facts["host"] for condition in conditions} - {None})
    return f" on {hosts[0]}" if len(hosts) == 1 else f" on {len(hosts)} hosts" if hosts else ""


def span(ns: int) -> str:
    """A time for people: `350 ms`, `2.1 s`, `4 min 10 s`, `2 h 5 min`."""
    seconds = ns / SECOND_NS
    if seconds < 1:
        return f"{max(0, round(seconds * 1000))} ms"
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
