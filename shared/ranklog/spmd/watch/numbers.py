"""Losses and gradients that stopped being finite, by key and rank.

What was never finite is how a framework prints (`accuracy=nan` on each line); a gradient that overflows
once is how loss scaling works; so a key counts after a finite value, and a gradient after several.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from ranklog.model.answer import Line
from ranklog.spmd.triage.series import is_loss
from ranklog.spmd.watch.news import number_of

_GRADIENT = re.compile(r"grad(?:ient)?s?[_ /.-]?norm", re.IGNORECASE)
GRADIENT_BAD_MIN = 3  # one after the other
GOOD_ENDS = 3  # finite values, one after the other, that end it
KEYS_MAX = 32  # of which a watch keeps count; the first ones


@dataclass(slots=True)
class _Count:
    """One key on one rank: values in a row, and whether it ever was finite."""

    finite: bool = False
    bad: int = 0
    good: int = 0
    since: int | None = None  # iteration
    since_ns: int = 0
    odd: bool = False
    points: bool = False  # the last value was telemetry, not in a line


@dataclass(frozen=True, slots=True)
class NotFinite:
    """A key that is NaN or infinite on these ranks (none: lines name none), since when. `points`: it is
    telemetry, and no line has it."""

    key: str
    ranks: tuple[int, ...]
    iteration: int | None
    since_ns: int
    points: bool = False


class Numbers:
    """Counts of every loss and gradient norm. -1 stands for lines without a rank."""

    def __init__(self) -> None:
        self._counts: dict[str, dict[int, _Count]] = {}

    def take(self, line: Line, *, points: bool = False) -> None:
        """The values of a line's metadata. `points`: the line stands for these."""
        for key in line.metadata:
            if not is_watched(key):
                continue
            value = number_of(line, key)
            if value is None or (key not in self._counts and len(self._counts) >= KEYS_MAX):
                continue
            rank = -1 if line.rank is None else line.rank
            count = self._counts.setdefault(key, {}).setdefault(rank, _Count())
            count.points = points
            _add(count, value, line, 1 if is_loss(key) else GRADIENT_BAD_MIN)

    def not_finite(self) -> list[NotFinite]:
        """What is not finite now, by key."""
        found = []
        for key, by_rank in self._counts.items():
            odd = {rank: count for rank, count in by_rank.items() if count.odd}
            if odd:
                first = min(odd.values(), key=lambda count: count.since_ns)
                ranks = tuple(sorted(rank for rank in odd if rank >= 0))
                found.append(NotFinite(key, ranks, first.since, first.since_ns, first.points))
        return found

    def to_json(self) -> dict[str, Any]:
        """For a file of state."""
        return {
            key: [
                [rank, c.finite, c.bad, c.good, c.since, c.since_ns, c.odd, c.points]
                for rank, c in by_rank.items()
            ]
            for key, by_rank in self._counts.items()
        }

    @classmethod
    def from_json(cls, said: dict[str, Any]) -> Numbers:
        """Inverse of to_json."""
        found = cls()
        found._counts = {
            key: {rank: _Count(*rest) for rank, *rest in rows} for key, rows in said.items()
        }
        return found


def is_watched(key: str) -> bool:
    """A loss, or the norm of a gradient."""
    return is_loss(key) or _GRADIENT.search(key) is not None


def _add(count: _Count, value: float, line: Line, bad_min: int) -> None:
    if math.isfinite(value):
        count.finite, count.bad = True, 0
        count.good += 1
        count.odd = count.odd and count.good < GOOD_ENDS
        return
    count.bad += 1
    count.good = 0
    if count.bad == 1 and not count.odd:
        count.since, count.since_ns = line.iteration, line.ts_ns
    count.odd = count.odd or (count.finite and count.bad >= bad_min)
