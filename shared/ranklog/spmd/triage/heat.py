"""Errors by rank and time, for a picture: who began, and whom it reached."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from ranklog.model.levels import ERROR
from ranklog.spmd.triage.facts import Facts

BUCKETS = 48
ROWS_MAX = 64  # ranks; suspects first, then those with the most


@dataclass(frozen=True, slots=True)
class Heat:
    """`rows[i]` is a rank and its errors in each of the buckets of [from_ns, to_ns)."""

    from_ns: int
    to_ns: int
    rows: list[tuple[int, list[int]]]


def error_heat(facts: Facts, suspects: Collection[int]) -> Heat | None:
    """None where no rank has an error. Groups of lines count once."""
    seen: set[tuple[str, int]] = set()
    found: list[tuple[int, int]] = []
    for line in facts.case.evidence:
        group = (line.stream_id, line.seq if line.group is None else line.group)
        if line.rank is None or (line.level or 0) < ERROR or group in seen:
            continue
        seen.add(group)
        found.append((line.rank, line.ts_ns))
    if not found:
        return None
    low, high = min(ts for _, ts in found), max(ts for _, ts in found) + 1
    totals = Counter(rank for rank, _ in found)
    ranks = sorted(totals, key=lambda rank: (rank not in suspects, -totals[rank], rank))[:ROWS_MAX]
    cells = Counter((rank, (ts - low) * BUCKETS // (high - low)) for rank, ts in found)
    rows = [(rank, [cells[rank, at] for at in range(BUCKETS)]) for rank in sorted(ranks)]
    return Heat(low, high, rows)
