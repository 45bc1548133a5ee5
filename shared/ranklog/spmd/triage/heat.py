"""Anomalies by rank and time, for a picture: who began, whom it reached, who fell silent.

Shapes: rows from top to bottom, each of BUCKETS cells over [from_ns, to_ns). A row is a rank, or a block of
ranks where there are more than rows; suspects then have rows of their own, above.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from ranklog.limits import SECOND_NS
from ranklog.model.levels import ERROR
from ranklog.spmd.triage.facts import Facts
from ranklog.spmd.triage.rules import FAULT_OF
from ranklog.spmd.triage.series import NOBODY, SLOW_FACTOR, Values, is_loss, is_time

BUCKETS = 60
ROWS_MAX = 64
SUSPECTS_MAX = 16
_SPAN_NS_MIN = SECOND_NS // 10  # less than that is simultaneous
_LEAD = 0.08  # of the span, before the first anomaly
_SYMPTOMS = frozenset(["watchdog", "gloo_timeout", "peer_gone", "no_connection", "barrier"])
_PEERS_MIN = 3


@dataclass(frozen=True, slots=True)
class Row:
    """`ranks`: first and last. `errors`, `odd`: how many in each cell; odd are values that are not
    finite, and times far over the peers'. `silent_from`: the first cell after its last line."""

    ranks: tuple[int, int]
    suspect: bool
    errors: list[int]
    odd: list[int]
    silent_from: int | None


@dataclass(frozen=True, slots=True)
class Heat:
    """`cells` of each row are equal parts of [from_ns, to_ns)."""

    from_ns: int
    to_ns: int
    rows: list[Row]


def anomaly_heat(facts: Facts, values: Values, suspects: Collection[int]) -> Heat | None:
    """None where nothing is odd about any rank."""
    errors, odd = list(_errors(facts)), list(_odd(values))
    last = {r: s.last_ns for r, s in facts.ranks.items() if s.last_ns is not None}
    if not last or not (errors or odd or suspects):
        return None
    low, high = _span([ts for _, ts in (*errors, *odd)], last, suspects)

    def cell(ts: int) -> int:
        return min(BUCKETS - 1, max(0, (ts - low) * BUCKETS // (high - low)))

    error_cells = Counter((rank, cell(ts)) for rank, ts in errors)
    odd_cells = Counter((rank, cell(ts)) for rank, ts in odd)
    rows = []
    for ranks, suspect in _blocks(sorted(facts.ranks), suspects):
        ends = [last[rank] for rank in ranks if rank in last]
        until = cell(max(ends)) + 1 if ends else 0
        rows.append(
            Row(
                (ranks[0], ranks[-1]),
                suspect,
                [sum(error_cells[rank, at] for rank in ranks) for at in range(BUCKETS)],
                [sum(odd_cells[rank, at] for rank in ranks) for at in range(BUCKETS)],
                until if until < BUCKETS else None,
            )
        )
    return Heat(low, high, rows)


def _errors(facts: Facts) -> Iterator[tuple[int, int]]:
    """(rank, ns) of errors and of what rules know; a group of lines counts once."""
    seen: set[tuple[str, int, int]] = set()
    known = {
        (s.line.stream_id, s.line.seq)
        for s in facts.signs
        if (s.kind in FAULT_OF or s.kind in _SYMPTOMS) and not s.handled
    }
    for line in facts.case.evidence:
        group = (line.stream_id, line.seq if line.group is None else line.group, line.rank or 0)
        if line.rank is None or group in seen:
            continue
        if (line.level or 0) >= ERROR or (line.stream_id, line.seq) in known:
            seen.add(group)
            yield line.rank, line.ts_ns


def _odd(values: Values) -> Iterator[tuple[int, int]]:
    """(rank, ns) of losses that are not finite, and of times far over the median of the iteration."""
    for key, by_rank in values.items():
        peers: dict[int, list[float]] = defaultdict(list)
        for rank, items in by_rank.items():
            for iteration, value, line in items:
                if rank != NOBODY and is_loss(key) and not math.isfinite(value):
                    yield rank, line.ts_ns
                elif rank != NOBODY and is_time(key) and math.isfinite(value):
                    peers[iteration].append(value)
        middle = {i: statistics.median(v) for i, v in peers.items() if len(v) >= _PEERS_MIN}
        for rank, items in by_rank.items():
            for iteration, value, line in items:
                usual = middle.get(iteration)
                if rank != NOBODY and usual is not None and value > SLOW_FACTOR * usual:
                    yield rank, line.ts_ns


def _span(times: Sequence[int], last: dict[int, int], suspects: Collection[int]) -> tuple[int, int]:
    """From before the first anomaly, or the first silence, to the last line."""
    ends = [last[rank] for rank in suspects if rank in last]
    first = min((*times, *ends), default=min(last.values()))
    high = max((*times, *last.values())) + 1
    low = first - int((high - first) * _LEAD)
    return min(low, high - _SPAN_NS_MIN), high


def _blocks(ranks: Sequence[int], suspects: Collection[int]) -> Iterator[tuple[list[int], bool]]:
    if len(ranks) <= ROWS_MAX:
        for rank in ranks:
            yield [rank], rank in suspects
        return
    shown = sorted(rank for rank in suspects if rank in set(ranks))
    # a set that is larger is seen in the blocks
    if len(shown) <= SUSPECTS_MAX:
        for rank in shown:
            yield [rank], True
    size = 1
    while len(ranks) > size * ROWS_MAX:
        size *= 2
    for at in range(0, len(ranks), size):
        block = list(ranks[at : at + size])
        yield block, all(rank in suspects for rank in block)
