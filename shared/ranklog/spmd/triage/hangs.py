"""Runs that stand still: who wrote without end, whose stack or last line is another's."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ranklog.limits import SECOND_NS
from ranklog.model.answer import Line
from ranklog.spmd.triage.case import Case
from ranklog.spmd.triage.dumps import find_stacks
from ranklog.spmd.triage.facts import Facts
from ranklog.spmd.triage.kills import Kill
from ranklog.spmd.triage.saves import iteration_in
from ranklog.spmd.triage.suspects import Suspect, of_ranks
from ranklog.spmd.triage.timing import has_time

# Without a new iteration for so many times the usual time, and for so long, a run stands still.
STILL_STEPS, STILL_NS = 10, 120 * SECOND_NS


@dataclass(frozen=True, slots=True)
class Hang:
    """`suspect` None: nobody can tell. `fault`: the class; `unknown` where no process is left."""

    suspect: Suspect | None
    why: str
    lines: Sequence[Line]
    fault: str = "hang"


def stuck_writer(facts: Facts) -> Suspect | None:
    """Ranks that began to write a checkpoint and never ended, while others did or everybody waits."""
    if facts.ended_well:
        return None
    begun: dict[int, tuple[int | None, Line]] = {}
    left: Counter[tuple[int, int | None]] = Counter()
    ended = False
    for sign in facts.signs:
        for rank in sign.ranks:
            if sign.kind == "save_begun":
                begun[rank] = (iteration_in(sign.line), sign.line)
                left[rank, iteration_in(sign.line)] += 1
            elif sign.kind == "save_ended":
                left[rank, iteration_in(sign.line)] -= 1
                ended = True
    open_ = {rank: line for rank, (iteration, line) in begun.items() if left[rank, iteration] > 0}
    if not open_ or not ended or (len(open_) * 2 > max(2, len(begun)) and len(begun) > 1):
        return None
    first = min(line.ts_ns for line in open_.values())
    if facts.progress.went_on(first):
        return None
    if facts.case.now_ns - first < STILL_NS // 4 and not facts.of("gloo_timeout", "watchdog"):
        return None
    lines = list(open_.values())[:4]
    why = "began to write a checkpoint and never ended"
    return of_ranks(facts.places, open_, 0.85, why, lines)


def find_hang(case: Case, facts: Facts, kill: Kill | None) -> Hang | None:
    """None where it goes on, or went on until somebody ended it."""
    told = find_stacks(case, facts)
    stacks = told is not None or _stacks(facts)
    if facts.success_ns is not None and not stacks:
        return None
    if not _stands_still(case, facts, kill) and not stacks:
        return None
    if told is not None and told.odd:
        suspect = of_ranks(facts.places, told.odd, 0.85, told.why, told.lines)
        return Hang(suspect, told.why, told.lines)
    odd = _odd(_stacks(facts))
    if odd:
        lines = [s.line for s in facts.of("stack_head") if s.ranks & odd][:4]
        why = "its stack is another than its peers'"
        return Hang(of_ranks(facts.places, odd, 0.85, why, lines), why, lines)
    gone = _gone(case, facts)
    if gone is not None:
        return gone
    silent = _stopped_first(facts)
    if silent is not None:
        return Hang(silent, silent.why, silent.lines)
    return Hang(None, "no rank goes on, and nothing tells who keeps them", facts.last_words())


def _stands_still(case: Case, facts: Facts, kill: Kill | None) -> bool:
    last = facts.progress.last_ns
    if last is None:
        return False
    timed = (line.ts_ns for line in (*case.evidence, *case.steps) if has_time(line))
    until = kill.ts_ns if kill is not None else case.now_ns if case.live else max(timed, default=0)
    return until - last > max(STILL_NS, STILL_STEPS * facts.progress.step_ns)


def _gone(case: Case, facts: Facts) -> Hang | None:
    """Ranks whose processes stopped sending heartbeats, while others' still do."""
    alive = {r: s.alive_ns for r, s in facts.ranks.items() if s.alive_ns is not None}
    if not case.live or len(alive) < len(facts.ranks):
        return None
    patience = max(STILL_NS, STILL_STEPS * facts.progress.step_ns)
    gone = frozenset(rank for rank, ts in alive.items() if case.now_ns - ts > patience)
    if not gone:
        return None
    lines = [line for r in sorted(gone) if (line := facts.ranks[r].last_line) is not None][:4]
    if len(gone) == len(alive):
        return Hang(None, "all processes are gone: no heartbeat comes from any", lines, "unknown")
    why = "its process is gone: no heartbeat comes, its peers' do"
    return Hang(of_ranks(facts.places, gone, 0.85, why, lines), why, lines)


def _stacks(facts: Facts) -> dict[int, tuple[str, ...]]:
    """Functions on the stack of each rank's threads, as dumped last; of dumps whose ranks only the
    launcher tells. None that the run survived."""
    frames: dict[int, list[str]] = defaultdict(list)
    heads = facts.of("stack_head")
    if not heads or facts.progress.went_on(max(facts.timing.latest(s.line) for s in heads)):
        return {}
    for sign in facts.of("stack_frame"):
        for rank in sign.ranks:
            frames[rank].append(sign.data["name"])
    return {rank: tuple(names) for rank, names in frames.items()}


def _odd(values: Mapping[int, object]) -> frozenset[int]:
    counts = Counter(values.values())
    if len(counts) < 2:
        return frozenset()
    (common, most), (_, second) = counts.most_common(2)
    if most == second or most * 2 <= len(values):
        return frozenset()
    return frozenset(rank for rank, value in values.items() if value != common)


def _stopped_first(facts: Facts) -> Suspect | None:
    """Ranks whose last iteration, or last kind of line, is before everybody else's."""
    reached = {r: s.last_iteration for r, s in facts.ranks.items() if s.last_iteration is not None}
    lines = {r: s.last_line for r, s in facts.ranks.items() if s.last_line is not None}
    odd: frozenset[int] = frozenset()
    why = "stopped before its peers"
    if len(reached) > 2 and len(reached) * 2 > len(facts.ranks):
        top = max(reached.values())
        behind = frozenset(rank for rank, iteration in reached.items() if iteration < top)
        if behind and len(behind) * 2 < len(reached):
            odd = behind
    if not odd and len(lines) > 2 and len(lines) * 2 > len(facts.ranks):
        odd = _odd({rank: line.tid or line.template for rank, line in lines.items()})
        why = "its last line is another than its peers'"
    if not odd or len(odd) * 2 > len(facts.ranks):
        return None
    shown = [line for rank in sorted(odd) if (line := lines.get(rank)) is not None][:4]
    return of_ranks(facts.places, odd, 0.7, why, shown)
