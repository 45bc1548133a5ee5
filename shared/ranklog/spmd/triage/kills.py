"""Runs that were ended from outside: time limits, preemption, cancelled jobs, signals."""

from __future__ import annotations

from dataclasses import dataclass

from ranklog.limits import SECOND_NS
from ranklog.model.answer import Line
from ranklog.spmd.triage.exits import signal_code
from ranklog.spmd.triage.facts import Facts
from ranklog.spmd.triage.suspects import Suspect, of_ranks
from ranklog.spmd.triage.timing import has_time

# What processes say of a requeue comes about with the scheduler's word of it.
_REQUEUE_NS = 60 * SECOND_NS
# Exit codes of signals that come from outside, SIGKILL aside: kernels and launchers send that, too.
_OUTSIDE = {-1: "SIGHUP", -2: "SIGINT", -10: "SIGUSR1", -12: "SIGUSR2", -15: "SIGTERM"}


@dataclass(frozen=True, slots=True)
class Kill:
    """`ts_ns`: when it was done; `limit`: the scheduler's time limit."""

    ts_ns: int
    why: str
    line: Line
    limit: bool = False


def find_kill(facts: Facts) -> Kill | None:
    """The first word of somebody who ended the whole run, not of what followed from a rank's end."""
    found: list[Kill] = []
    requeued = [s.ts_ns for s in facts.of("cancelled") if "REQUEUE" in (s.data.get("why") or "")]
    for sign in facts.of("cancelled"):
        reason = (sign.data.get("why") or "").strip()
        if "NODE FAIL" in reason or "REQUEUE" in reason:
            continue
        if not reason and _somebody_left(facts, sign.ts_ns):
            continue
        why = f"the scheduler ended it: {reason.lower() or 'cancelled'}"
        found.append(Kill(sign.ts_ns, why, sign.line, "TIME LIMIT" in reason))
    for sign in facts.of("agent_killed"):
        found.append(Kill(sign.ts_ns, "the launcher was sent a signal", sign.line))
    terms = [
        sign
        for sign in facts.of("sigterm")
        if not any(abs(sign.ts_ns - ts) < _REQUEUE_NS for ts in requeued)
        and (has_time(sign.line) or not facts.progress.cut_ns)
        and not facts.progress.went_on(sign.ts_ns)
        and facts.success_ns is None
    ]
    if terms and not facts.of("elastic_failed") and not _somebody_left(facts, terms[0].ts_ns):
        found.append(Kill(terms[0].ts_ns, "its processes were told to end", terms[0].line))
    found = found or _interrupted(facts) or _signalled(facts)
    if not found:
        return None
    first = min(found, key=lambda kill: kill.ts_ns)
    limit = next((kill for kill in found if kill.limit), None)
    return Kill(first.ts_ns, limit.why if limit else first.why, first.line, limit is not None)


def _interrupted(facts: Facts) -> list[Kill]:
    """From the keyboard: who is interrupted says nothing else."""
    signs = [s for s in facts.of("exception") if s.data["name"] == "KeyboardInterrupt"]
    signs = [s for s in signs if not s.handled and not facts.progress.went_on(s.ts_ns)]
    if not signs or facts.success_ns is not None or _somebody_left(facts, signs[0].ts_ns):
        return []
    return [Kill(signs[0].ts_ns, "it was interrupted from the keyboard", signs[0].line)]


def _signalled(facts: Facts) -> list[Kill]:
    """Every rank ended by one signal that no program sends itself: a scheduler's warning, a kill."""
    codes = facts.codes()
    signals = {signal_code(code) for code in codes.values()}
    if len(signals) != 1 or not signals < _OUTSIDE.keys() or len(codes) < facts.world:
        return []
    lines = [e.line for e in facts.exits if e.line is not None] or facts.last_words()
    if not lines or facts.success_ns is not None:
        return []
    name = _OUTSIDE[signals.pop()]
    return [Kill(lines[-1].ts_ns, f"every process was ended by {name}", lines[-1])]


def _somebody_left(facts: Facts, ts_ns: int) -> bool:
    """Whether a rank ended by itself before: then the rest was cancelled for it."""
    return any(
        e.code not in (0, -15) and (e.line is None or e.line.ts_ns <= ts_ns + 10**9)
        for e in facts.exits
    )


def killed_ranks(facts: Facts, kill: Kill | None) -> Suspect | None:
    """Ranks that were ended by SIGKILL, and nobody says why, while the others went on until then."""
    if kill is not None:
        return None
    forced = frozenset(r for s in facts.of("forced") for r in s.ranks)
    codes = facts.codes()
    killed = frozenset(rank for rank, code in codes.items() if code == -9) - forced
    if not killed or len(killed) * 2 > max(2, facts.world):
        return None
    lines = [e.line for e in facts.exits if e.rank in killed and e.line is not None][:4]
    why = "ended by SIGKILL, and no line says by whom"
    return of_ranks(facts.places, killed, 0.7, why, lines)
