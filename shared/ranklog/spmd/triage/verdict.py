"""The class of a failure and its suspects, from signs, exits and what ranks last did.

Causes before symptoms: what a kernel, a GPU's memory, a file system or a check of numbers says beats
the time-outs and broken connections that follow from it, whoever was first to report.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ranklog.model.answer import Line
from ranklog.spmd.flights import FlightVerdict
from ranklog.spmd.triage.blame import Cause
from ranklog.spmd.triage.case import Case
from ranklog.spmd.triage.causes import find_causes
from ranklog.spmd.triage.collectives import Waiting, judge_waiting
from ranklog.spmd.triage.dumps import find_flight
from ranklog.spmd.triage.exits import signal_code
from ranklog.spmd.triage.facts import Facts, gather
from ranklog.spmd.triage.hangs import find_hang, stuck_writer
from ranklog.spmd.triage.kills import Kill, find_kill, killed_ranks
from ranklog.spmd.triage.series import (
    Odd,
    Values,
    find_nan,
    find_slow,
    find_slowdown,
    find_spike,
    read_values,
)
from ranklog.spmd.triage.suspects import Suspect, everybody, of_ranks

# Causes above are named by lines; below are exceptions and codes, which can be another fault's.
_SURE = 0.8
_SUSPECTS_MAX = 8


@dataclass(slots=True)
class Verdict:
    """`suspects`: the likeliest first; empty where the run is healthy, was ended from outside, or
    `undecidable`. `why` in words; `lines` show it, or the values of `series`; `facts`, `values`: what it was
    judged by."""

    fault: str = "none"
    suspects: list[Suspect] = field(default_factory=list)
    undecidable: bool = False
    why: str = ""
    lines: Sequence[Line] = ()
    series: str | None = None
    facts: Facts | None = None
    values: Values = field(default_factory=dict)


def judge(case: Case) -> Verdict:
    """What happened to the attempt."""
    facts = gather(case)
    values = read_values(facts.progress.steps)
    verdict = _judge(case, facts, values)
    verdict.facts, verdict.values = facts, values
    return verdict


def _judge(case: Case, facts: Facts, values: Values) -> Verdict:
    numbers = find_nan(values) or find_spike(values)
    kill = find_kill(facts)
    causes = find_causes(facts, kill)
    waiting = None if facts.ended_well else judge_waiting(facts.signs, facts.ranks, facts.exits)
    flight = find_flight(case, facts)
    named = waiting is not None and waiting.fault == "collective_mismatch" and waiting.ranks
    recorded = flight is not None and flight.ranks
    if causes and (causes[0].score > _SURE or (numbers is None and not named and not recorded)):
        best = causes[0]
        if not best.suspect.is_named:
            return Verdict(best.fault, [], True, best.why, best.suspect.lines)
        return Verdict(best.fault, _ordered(causes), False, best.why, best.suspect.lines)
    if numbers is not None:
        return _of_numbers(facts, numbers)
    if flight is not None and recorded:
        return _of_flight(facts, flight)
    if waiting is not None and named:
        return _of_waiting(facts, waiting) or Verdict()
    stuck = stuck_writer(facts)
    if stuck is not None:
        return Verdict("storage", [stuck], False, stuck.why, stuck.lines)
    return (
        _of_waiting(facts, waiting)
        or (None if flight is None else _of_flight(facts, flight))
        or _of_killed(facts, kill)
        or _of_hang(case, facts, kill)
        or _of_kill(kill)
        or _of_slow(facts, values)
        or _of_launcher(facts)
        or _of_connections(facts)
        or _healthy_or_unknown(facts)
    )


def _ordered(causes: Sequence[Cause]) -> list[Suspect]:
    """Each once, those of the best cause's class first; nobody beside all ranks alike."""
    best = causes[0]
    if best.suspect.ranks == "all":
        return [best.suspect]
    order = sorted(causes, key=lambda cause: cause.fault != best.fault)
    found: dict[str, Suspect] = {}
    for cause in order:
        found.setdefault(cause.suspect.name, cause.suspect)
    return list(found.values())[:_SUSPECTS_MAX]


def _of_numbers(facts: Facts, odd: Odd) -> Verdict:
    if odd.ranks:
        suspect = of_ranks(facts.places, odd.ranks, 0.9, odd.why, odd.lines)
    else:
        suspect = everybody(0.8, odd.why, odd.lines)
    return Verdict("numeric", [suspect], False, odd.why, odd.lines, odd.key)


def _of_waiting(facts: Facts, waiting: Waiting | None) -> Verdict | None:
    if waiting is None:
        return None
    lines = [sign.line for sign in waiting.signs]
    if not waiting.ranks:
        return Verdict(waiting.fault, [], True, waiting.why, lines)
    suspect = of_ranks(facts.places, waiting.ranks, 0.9 * waiting.sure, waiting.why, lines)
    return Verdict(waiting.fault, [suspect], False, waiting.why, lines)


def _of_flight(facts: Facts, flight: FlightVerdict) -> Verdict:
    fault = "collective_mismatch" if flight.kind == "mismatch" else "collective_timeout"
    if not flight.ranks:
        return Verdict(fault, [], True, flight.why, flight.lines)
    suspect = of_ranks(facts.places, flight.ranks, 0.9, flight.why, flight.lines)
    return Verdict(fault, [suspect], False, flight.why, flight.lines)


def _of_killed(facts: Facts, kill: Kill | None) -> Verdict | None:
    found = killed_ranks(facts, kill)
    if found is None:
        return None
    return Verdict("external_kill", [found], False, found.why, found.lines)


def _of_hang(case: Case, facts: Facts, kill: Kill | None) -> Verdict | None:
    hang = find_hang(case, facts, kill)
    if hang is None:
        return None
    suspects = [] if hang.suspect is None else [hang.suspect]
    return Verdict(hang.fault, suspects, not suspects, hang.why, hang.lines)


def _of_kill(kill: Kill | None) -> Verdict | None:
    if kill is None:
        return None
    return Verdict("external_kill", [], False, kill.why, [kill.line])


def _of_slow(facts: Facts, values: Values) -> Verdict | None:
    if facts.failed:
        return None
    slow = find_slow(values, facts.of("rank_time"))
    if slow is None:
        late = find_slowdown(values, facts.progress.firsts)
        return None if late is None else Verdict("slow", [], True, late.why, late.lines, late.key)
    suspect = of_ranks(facts.places, slow.ranks, 0.8, slow.why, slow.lines)
    return Verdict("slow", [suspect], False, slow.why, slow.lines, slow.key)


def _of_launcher(facts: Facts) -> Verdict | None:
    """A launcher's word of how a process of its left, which does not say whose."""
    if facts.success_ns is not None:
        return None
    for sign in facts.of("left_with"):
        code = sign.data.get("code") or sign.data.get("code2") or "-9"
        number = signal_code(int(code))
        if number in (0, 1) or facts.progress.went_on(sign.ts_ns):
            continue
        fault = "external_kill" if number == -9 else "crash_signal" if number < 0 else "unknown"
        why = f"a process ended by signal {-number}" if number < 0 else f"exit code {number}"
        return Verdict(fault, [], True, f"{why}, and no line says whose", [sign.line])
    return None


def _of_connections(facts: Facts) -> Verdict | None:
    """Nobody says anything but that the others can't be reached."""
    if facts.success_ns is not None:
        return None
    signs = [
        sign
        for sign in facts.of("no_connection")
        if not sign.handled and not facts.progress.went_on(facts.timing.latest(sign.line))
    ]
    if not signs:
        return None
    why = "connections between ranks failed, and no line says what was before"
    return Verdict("network", [], True, why, [sign.line for sign in signs[:6]])


def _healthy_or_unknown(facts: Facts) -> Verdict:
    if not facts.failed:
        return Verdict()
    return Verdict("unknown", [], True, "it failed, and no line says why", facts.last_words())
