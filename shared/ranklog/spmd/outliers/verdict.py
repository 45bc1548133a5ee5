"""Deviations into scores: what is odd about a rank beyond what is odd about ranks of this run.

score      1 - product of (1 - weight) over a rank's evidence, the strongest of each kind and key
odd        a score of ODD_SCORE or more
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ranklog.spmd.outliers.consensus import totals
from ranklog.spmd.outliers.evidence import Attempt, Evidence
from ranklog.spmd.outliers.progress import silences
from ranklog.spmd.outliers.rhythm import beats
from ranklog.spmd.outliers.values import Sample, deviations
from ranklog.spmd.topology import Group

ODD_SCORE = 0.5
# Evidence that a rank is shown with, and that counts: of hundreds of odd words most are one event's.
EVIDENCE_MAX = 8
# What this share of the ranks, from the least odd on, does not exceed is usual.
_USUAL_QUANTILE = 0.7
# One thing again and again is odd, but one thing.
REPEATED_WEIGHT_MAX = 0.6


@dataclass(slots=True)
class Outlier:
    """A rank with its score and evidence, the strongest first."""

    rank: int
    score: float
    evidence: list[Evidence]

    @property
    def odd(self) -> bool:
        return self.score >= ODD_SCORE


@dataclass(slots=True)
class Outliers:
    """Ranks that deviate, the oddest first; `group`: what the odd ones have in common."""

    ranks: list[Outlier] = field(default_factory=list)
    group: Group | None = None

    @property
    def odd(self) -> list[Outlier]:
        return [item for item in self.ranks if item.odd]


def find_outliers(attempt: Attempt, samples: Sequence[Sample] = ()) -> Outliers:
    """Hold every rank against its peers. `samples`: lines of values.wanted_rows with their text."""
    found = [*totals(attempt), *beats(attempt), *silences(attempt)]
    found += deviations(attempt, samples)
    by_rank: dict[int, list[Evidence]] = defaultdict(list)
    for item in found:
        by_rank[item.rank].append(item)
    usual = _usual(by_rank.values(), attempt.count)
    ranks = [_scored(rank, items, usual) for rank, items in by_rank.items()]
    ranks = [item for item in ranks if item.score > 0]
    ranks.sort(key=lambda item: (-item.score, item.rank))
    odd = [item.rank for item in ranks if item.odd]
    return Outliers(ranks, attempt.topology.explain(odd))


def _sum(items: Iterable[Evidence]) -> float:
    return sum(item.weight for item in items)


def _usual(found: Iterable[Sequence[Evidence]], count: int) -> float:
    """What most ranks have of it: where each says something of its own, that is no deviation."""
    sums = sorted((_sum(items) for items in found), reverse=True)
    sums += [0.0] * (count - len(sums))
    return float(np.quantile(sums, _USUAL_QUANTILE, method="lower")) if sums else 0.0


def _together(items: Sequence[Evidence]) -> Evidence:
    """The strongest, or the first of several places where the same is missing, or too much."""
    strongest = max(items, key=lambda item: item.weight)
    places = [item for item in items if item.iteration is not None]
    if len(places) < 2 or strongest.iteration is None:
        return strongest
    weight = 1 - float(np.prod([1 - item.weight for item in places]))
    first = min(places, key=lambda item: item.iteration or 0)
    return replace(first, weight=max(strongest.weight, min(weight, REPEATED_WEIGHT_MAX)))


def _scored(rank: int, items: list[Evidence], usual: float) -> Outlier:
    groups: dict[tuple[str, int, str | None], list[Evidence]] = defaultdict(list)
    for item in items:
        groups[item.kind, item.key, item.name].append(item)
    evidence = sorted(map(_together, groups.values()), key=lambda item: -item.weight)[:EVIDENCE_MAX]
    total = _sum(items)
    factor = max(0.0, 1 - usual / total) if total else 0.0
    score = 1 - float(np.prod([1 - min(0.99, item.weight * factor) for item in evidence]))
    return Outlier(rank, round(score, 3), evidence)
