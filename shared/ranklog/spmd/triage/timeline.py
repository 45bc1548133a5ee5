"""What happened in order: first errors, ends, silences, restarts, checkpoints."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ranklog.model.answer import Line
from ranklog.model.levels import ERROR
from ranklog.spmd.triage.facts import Facts
from ranklog.spmd.triage.hangs import STILL_NS, STILL_STEPS
from ranklog.spmd.triage.saves import iteration_in

EVENTS_MAX = 100  # rows; of each kind the first ones are kept
_OF_A_KIND = 24


@dataclass(frozen=True, slots=True)
class Event:
    """`event`: first_error | last_line | silent | gone | late | exit | restart | checkpoint."""

    ts_ns: int
    event: str
    rank: int | None = None
    iteration: int | None = None
    line: Line | None = None
    note: str = ""


def make_timeline(facts: Facts, suspects: Collection[int], gaps: Collection[int]) -> list[Event]:
    """In order of time. `gaps`: ranks of which lines are missing, so that they may be late."""
    events = [
        *_first(_first_errors(facts), suspects),
        *_silences(facts, gaps)[:_OF_A_KIND],
        *_first(_exits(facts), suspects),
        *_others(facts),
        *_last_lines(facts, suspects),
    ]
    return sorted(events, key=lambda e: (e.ts_ns, e.rank or -1))[:EVENTS_MAX]


def _first(events: Sequence[Event], suspects: Collection[int]) -> list[Event]:
    """The first ones, and those of suspects."""
    return [e for at, e in enumerate(events) if at < _OF_A_KIND or e.rank in suspects]


def _first_errors(facts: Facts) -> list[Event]:
    seen: dict[int | None, Line] = {}
    for sign in facts.signs:
        line = sign.line
        if (line.level or 0) >= ERROR and line.rank not in seen and not sign.handled:
            seen[line.rank] = line
    found = [Event(n.ts_ns, "first_error", r, n.iteration, n) for r, n in seen.items()]
    return sorted(found, key=lambda e: e.ts_ns)


def _silences(facts: Facts, gaps: Collection[int]) -> list[Event]:
    """Ranks that said their last long before the others did."""
    last = {r: s.last_ns for r, s in facts.ranks.items() if s.last_ns is not None}
    if len(last) < 2:
        return []
    until = facts.case.now_ns if facts.case.live else max(last.values())
    patience = max(STILL_NS, STILL_STEPS * facts.progress.step_ns)
    found = []
    for rank, ts in last.items():
        state = facts.ranks[rank]
        if until - ts <= patience or state.ended:
            continue
        if rank in gaps:
            event = "late"
        elif state.alive_ns is not None and until - state.alive_ns > patience:
            event = "gone"
        else:
            event = "silent"
        note = f"nothing for {(until - ts) / 1e9:.0f} s"
        found.append(Event(ts, event, rank, state.last_iteration, state.last_line, note))
    return sorted(found, key=lambda e: e.ts_ns)


def _exits(facts: Facts) -> list[Event]:
    """Own ends before those that a launcher made."""
    bad = sorted(facts.bad_exits, key=lambda item: (item.code == -15, item.rank))
    return [
        Event(
            item.line.ts_ns if item.line is not None else facts.case.last_ns,
            "exit",
            item.rank,
            line=item.line,
            note=f"signal {-item.code}" if item.code < 0 else f"exit code {item.code}",
        )
        for item in {item.rank: item for item in reversed(bad)}.values()
    ][::-1]


def _others(facts: Facts) -> list[Event]:
    found = [Event(s.ts_ns, "restart", line=s.line) for s in facts.of("restart")[-4:]]
    for kind in ("save_begun", "save_ended"):
        saves = facts.of(kind)
        if saves:
            line = saves[-1].line
            found.append(Event(line.ts_ns, "checkpoint", line.rank, iteration_in(line), line))
    return found


def _last_lines(facts: Facts, suspects: Collection[int]) -> list[Event]:
    found = []
    for rank in sorted(suspects)[:8]:
        state = facts.ranks.get(rank)
        if state is not None and state.last_line is not None:
            line = state.last_line
            found.append(Event(line.ts_ns, "last_line", rank, state.last_iteration, line))
    return found
