"""What dumps say of a run that stands still: stacks of all ranks, flight recorders.

A dump that the run survived, as of a timer that repeats, is none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ranklog.limits import SECOND_NS
from ranklog.model.answer import Line
from ranklog.spmd.flights import FlightVerdict, flight_evidence
from ranklog.spmd.stacks import StackEvidence, stack_evidence
from ranklog.spmd.triage.case import Case
from ranklog.spmd.triage.facts import Facts
from ranklog.spmd.triage.progress import newest_attempt


def find_stacks(case: Case, facts: Facts) -> StackEvidence | None:
    """None without stacks of two ranks that the run did not survive."""
    lines = _of_this_attempt(case, facts, (x for x in case.dumps if "flight" not in x.metadata))
    if not lines or facts.progress.went_on(max(map(facts.timing.latest, lines))):
        return None
    return stack_evidence(lines)


def find_flight(case: Case, facts: Facts) -> FlightVerdict | None:
    """None where no collective is open, or the run went on. The lines' times are those of their
    collectives: the newest one is about when everything stopped."""
    lines = _of_this_attempt(case, facts, (x for x in case.dumps if "flight" in x.metadata))
    if not lines or facts.ended_well or facts.progress.went_on(max(x.ts_ns for x in lines)):
        return None
    found = flight_evidence(lines)
    if found is None or found.lines:
        return found
    return replace(found, lines=tuple(lines[-4:]))


def _of_this_attempt(case: Case, facts: Facts, lines: Iterable[Line]) -> list[Line]:
    """In order of seq within each stream."""
    start, newest = facts.progress.cut_ns - SECOND_NS, newest_attempt(case)
    own = (
        line
        for line in lines
        if facts.timing.latest(line) >= start
        and (line.attempt == newest or line.stream_id not in case.own_streams)
    )
    return sorted(own, key=lambda line: (line.stream_id, line.seq))
