"""Flight recorder entries of all ranks: who did not join a collective, or joined with another one.

Read are lines that an import made of dumps (metadata `flight`, `pg`, `collective_seq_id`, `op`, `state`
…). Ranks of one process group count its collectives alike, so the first number that some rank has not
completed is where the group stands: a member without it keeps the others, one with another operation or
size under it is elsewhere. A rank that is missing in one group because it waits in another is a victim.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ranklog.model.answer import Line

DONE = "completed"
# Operations to which every rank brings the same sizes.
_EVEN = re.compile(r"all_?reduce|broadcast|reduce_?scatter|all_?gather", re.I)
_LINES = 6


@dataclass(frozen=True, slots=True)
class Entry:
    """A collective as one rank recorded it."""

    rank: int
    pg: str
    seq: int
    op: str
    sizes: str
    state: str
    line: Line

    @property
    def done(self) -> bool:
        return self.state == DONE


@dataclass(slots=True)
class Flights:
    """Dumps of one attempt: `entries[pg][rank][seq]`, `members[pg]`, `reached[pg][rank]` the last number
    that was enqueued; `ranks`: those with a dump."""

    entries: dict[str, dict[int, dict[int, Entry]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(dict))
    )
    members: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    reached: dict[str, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    ranks: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class FlightVerdict:
    """`kind`: mismatch, missing (did not enqueue it), no_dump (nothing was dumped by it), not_started, or
    undecided. `ranks`: who keeps the others, empty where undecided; `pg`, `seq`, `op`: where they wait."""

    kind: str
    pg: str
    seq: int
    op: str
    ranks: frozenset[int]
    why: str
    lines: tuple[Line, ...]


def read_flights(lines: Iterable[Line]) -> Flights:
    """Entries of lines that have them; other lines are passed over."""
    flights = Flights()
    for line in lines:
        said = line.metadata
        kind = said.get("flight")
        if kind is None:
            continue
        pg = str(said.get("pg", ""))
        if kind == "group":
            flights.members[pg] |= _ranks(said.get("members"))
            continue
        if line.rank is None:
            continue
        flights.ranks.add(line.rank)
        if kind == "status" and pg:
            _reach(flights, pg, line.rank, said.get("last_enqueued"))
        elif kind == "entry":
            _add_entry(flights, line, pg)
    for pg, by_rank in flights.entries.items():
        flights.members[pg] |= set(by_rank)
    return flights


def _add_entry(flights: Flights, line: Line, pg: str) -> None:
    said = line.metadata
    seq = said.get("collective_seq_id", said.get("seq_id"))
    if not isinstance(seq, int) or said.get("is_p2p") or line.rank is None:
        return
    # gloo never says that one is completed; it retires it
    quiet = said.get("retired") == 1 and str(said.get("op")).startswith("gloo:")
    state = DONE if quiet else str(said.get("state", ""))
    sizes = f"{said.get('input_sizes')} {said.get('input_dtypes')}"
    op = str(said.get("op", "")).partition(":")[2] or str(said.get("op", ""))
    entry = Entry(line.rank, pg, seq, op, sizes, state, line)
    flights.entries[pg][line.rank][seq] = entry
    _reach(flights, pg, line.rank, seq)


def _reach(flights: Flights, pg: str, rank: int, seq: Any) -> None:
    if isinstance(seq, int) and seq >= 0:
        reached = flights.reached[pg]
        reached[rank] = max(seq, reached.get(rank, -1))


def _ranks(text: object) -> set[int]:
    found: set[int] = set()
    for low, high in re.findall(r"(\d+)(?:-(\d+))?", "" if text is None else str(text)):
        found |= set(range(int(low), int(high or low) + 1))
    return found


def flight_evidence(lines: Iterable[Line]) -> FlightVerdict | None:
    """What the dumps say of a time-out or hang, for triage; None where no collective is open.

    Of several groups that wait, the one counts whose missing ranks do not wait elsewhere themselves.
    """
    flights = read_flights(lines)
    found = [verdict for pg in flights.entries if (verdict := judge_group(flights, pg)) is not None]
    if not found:
        return None
    waiting = {rank for pg in flights.entries for rank in _open(flights, pg)}
    for verdict in found:
        if verdict.kind == "mismatch":
            return verdict
    roots = [verdict for verdict in found if verdict.ranks - waiting]
    if roots:
        first = min(roots, key=lambda v: (v.kind == "no_dump", v.lines[0].ts_ns if v.lines else 0))
        return _with_ranks(first, first.ranks - waiting)
    if len(found) == 1 and found[0].kind in ("not_started", "undecided"):
        return found[0]
    return _with_ranks(found[0], frozenset(), "undecided", "every rank waits for another")


def _with_ranks(
    verdict: FlightVerdict, ranks: frozenset[int], kind: str = "", why: str = ""
) -> FlightVerdict:
    return FlightVerdict(
        kind or verdict.kind,
        verdict.pg,
        verdict.seq,
        verdict.op,
        ranks,
        why or verdict.why,
        verdict.lines,
    )


def _open(flights: Flights, pg: str) -> dict[int, int]:
    """Ranks that have not completed something, and the first number of it."""
    found = {}
    for rank, by_seq in flights.entries[pg].items():
        pending = [seq for seq, entry in by_seq.items() if not entry.done]
        if pending:
            found[rank] = min(pending)
    return found


def judge_group(flights: Flights, pg: str) -> FlightVerdict | None:
    """Where one process group stands; None where everything is completed."""
    pending = _open(flights, pg)
    if not pending:
        return None
    seq = min(pending.values())
    here = {r: own[seq] for r, own in flights.entries[pg].items() if seq in own}
    shown = tuple(entry.line for entry in here.values())[:_LINES]
    op = Counter(entry.op for entry in here.values()).most_common(1)[0][0]
    odd = _elsewhere(here)
    if odd:
        lines = (*(here[rank].line for rank in sorted(odd)), *shown)[:_LINES]
        why = f"runs {_said(here, odd)} as number {seq} of group {pg}, its peers {op}"
        return FlightVerdict("mismatch", pg, seq, op, odd, why, lines)
    reached = flights.reached[pg]
    absent = frozenset(flights.members[pg] - set(here))
    behind = frozenset(r for r in absent & flights.ranks if reached.get(r, -1) < seq)
    if behind:
        last = min(reached.get(rank, -1) for rank in behind)
        its = f"its last one is {last}" if last >= 0 else "it enqueued none"
        why = f"did not enqueue number {seq} ({op}) of group {pg}: {its}"
        return FlightVerdict("missing", pg, seq, op, behind, why, shown)
    mute = absent - flights.ranks
    if mute:
        why = f"dumped nothing, while its peers wait in number {seq} ({op}) of group {pg}"
        return FlightVerdict("no_dump", pg, seq, op, mute, why, shown)
    return _same(here, pg, seq, op, shown)


def _same(
    here: Mapping[int, Entry], pg: str, seq: int, op: str, shown: tuple[Line, ...]
) -> FlightVerdict:
    """All joined, with the same: who has not begun, where the others have."""
    idle = frozenset(rank for rank, entry in here.items() if entry.state == "scheduled")
    if idle and 2 * len(idle) < len(here):
        why = f"enqueued number {seq} ({op}) of group {pg} and did not start it"
        return FlightVerdict("not_started", pg, seq, op, idle, why, shown)
    why = f"all joined number {seq} ({op}) of group {pg} alike, and it is not completed"
    return FlightVerdict("undecided", pg, seq, op, frozenset(), why, shown)


def _elsewhere(here: Mapping[int, Entry]) -> frozenset[int]:
    """Ranks with another operation than most, or, of the same, other sizes or types."""
    odd = _minority({rank: entry.op for rank, entry in here.items()})
    if odd or not all(_EVEN.search(entry.op) for entry in here.values()):
        return odd
    return _minority({rank: entry.sizes for rank, entry in here.items()})


def _minority(values: Mapping[int, str]) -> frozenset[int]:
    counts = Counter(values.values()).most_common(2)
    if len(counts) < 2 or counts[0][1] == counts[1][1]:
        return frozenset()
    return frozenset(rank for rank, value in values.items() if value != counts[0][0])


def _said(here: Mapping[int, Entry], odd: Iterable[int]) -> str:
    first: Sequence[Entry] = [here[rank] for rank in sorted(odd)]
    return f"{first[0].op} of {first[0].sizes.split(' ')[0]}"
