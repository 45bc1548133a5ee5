"""Objectives against what was measured: met or missed, and what is left of the error budget. Pure.

Of n things an objective allows floor((1 - share) * n) bad ones. It is met while no more were bad, which for
a quantile is the same as: the quantile, nearest rank, is within the target (property-tested). What is left
is 1 - bad / allowed: 1 with nothing spent, 0 with all, below 0 where it is missed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ranklog.objectives import names
from ranklog.objectives.measures import Measures
from ranklog.objectives.targets import OBJECTIVES, Objective, Targets


@dataclass(frozen=True, slots=True)
class Stored:
    """What the indexes of the period say, in lines. `missing`: known of and not stored; `lost`: missing
    or in a segment that is gone, though they were acknowledged."""

    lines: int = 0
    deleted: int = 0
    missing: int = 0
    lost: int = 0
    dropped: int = 0
    streams: int = 0
    streams_behind: int = 0

    def to_json(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Verdict:
    """One objective. `of` things were judged, `bad` of them, `allowed` might have been; `value` is ms or
    a share, None where nothing was measured; `met` None: nothing to judge, or no objective."""

    name: str
    value: float | None
    target: float | None
    met: bool | None
    of: int
    bad: int
    allowed: int

    @property
    def left(self) -> float | None:
        """Share of the error budget that is left; None where there is none to share."""
        if self.met is None or (not self.allowed and self.bad):
            return None
        return 1 - self.bad / self.allowed if self.allowed else 1.0

    def to_json(self) -> dict[str, Any]:
        return {
            "objective": self.name,
            "value": self.value,
            "target": self.target,
            "met": self.met,
            "of": self.of,
            "bad": self.bad,
            "allowed": self.allowed,
            "budget_left": self.left,
        }


def judge(measures: Measures, stored: Stored, targets: Targets) -> list[Verdict]:
    """Every objective, in the order of objectives/targets.py."""
    return [
        _judge(objective, measures, stored, targets[objective.name]) for objective in OBJECTIVES
    ]


def allowed_of(share: Fraction, count: int) -> int:
    """How many of `count` may be bad where `share` of them must be good."""
    return math.floor((1 - share) * count)


def _judge(
    objective: Objective, measures: Measures, stored: Stored, target: float | None
) -> Verdict:
    if objective.times is not None:
        times = measures.times(objective.times)
        bad = 0 if target is None else times.over(target)
        allowed = allowed_of(objective.share, times.count)
        value = times.quantile(objective.share)
        return _verdict(objective.name, value, target, times.count, bad, allowed)
    of, bad = _shares(objective.name, measures, stored)
    # the target as it was written: 0.9999 is no binary fraction
    share = Fraction(1) if target is None else Fraction(Decimal(repr(target)))
    value = (of - bad) / of if of else None
    return _verdict(objective.name, value, target, of, bad, allowed_of(share, of))


def _verdict(
    name: str, value: float | None, target: float | None, of: int, bad: int, allowed: int
) -> Verdict:
    met = bad <= allowed if of and target is not None else None
    return Verdict(name, value, target, met, of, bad, allowed)


def _shares(name: str, measures: Measures, stored: Stored) -> tuple[int, int]:
    """(how many there were, how many of them were bad)."""
    counts = measures.counts
    answers = sum(counts[word] for word in names.ANSWERS.values())
    kept = stored.lines + stored.deleted
    partial, complete = (counts[names.ANSWERS[state]] for state in ("partial", "complete"))
    canary_bad = counts[names.CANARY_MISSING] + counts[names.CANARY_DOUBLED]
    return {
        "completeness": (kept + stored.missing, stored.missing),
        "durability": (kept + stored.lost, stored.lost),
        "answers_served": (counts[names.QUERIES], counts[names.QUERIES_FAILED]),
        "answers_whole": (answers, partial),
        "answers_current": (answers, answers - complete),
        "canary_found": (counts[names.CANARY_LINES], canary_bad),
    }[name]


def any_missed(verdicts: Sequence[Verdict]) -> bool:
    """Whether an objective is not met."""
    return any(verdict.met is False for verdict in verdicts)


def any_measured(verdicts: Sequence[Verdict]) -> bool:
    """Whether there was anything to judge."""
    return any(verdict.met is not None for verdict in verdicts)
