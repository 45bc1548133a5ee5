"""What was measured in some time: counts, and histograms of how long things took. Merging is exact.

    {"counts": {"lines": 120}, "ms": {"freshness_ms": {"87": 120}}}

All counts are whole numbers (money in billionths of a dollar), so that parts that are merged in any order
give the same bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ranklog.objectives.histogram import Histogram


@dataclass(slots=True)
class Measures:
    """By the names of objectives/names.py."""

    counts: Counter[str] = field(default_factory=Counter)
    ms: dict[str, Histogram] = field(default_factory=dict)

    def count(self, name: str, number: int = 1) -> None:
        """So many more."""
        if number:
            self.counts[name] += number

    def took(self, name: str, ms: float, count: int = 1) -> None:
        """`count` things took that long."""
        self.times(name).add(ms, count)

    def times(self, name: str) -> Histogram:
        """The histogram of that name, empty where nothing was measured."""
        return self.ms.setdefault(name, Histogram())

    def merge(self, other: Measures) -> None:
        """Take the other's in."""
        self.counts.update(other.counts)
        for name, histogram in other.ms.items():
            self.times(name).merge(histogram)

    def __bool__(self) -> bool:
        return bool(self.counts) or any(item.buckets for item in self.ms.values())

    def to_json(self) -> dict[str, Any]:
        times = {name: item.to_json() for name, item in sorted(self.ms.items()) if item.buckets}
        return {"counts": dict(sorted(self.counts.items())), "ms": times}

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> Measures:
        """Inverse of `to_json`. Raises ValueError, KeyError, TypeError, AttributeError."""
        counts = Counter({str(name): int(number) for name, number in said["counts"].items()})
        times = {str(name): Histogram.from_json(item) for name, item in said["ms"].items()}
        return cls(counts, times)


def merged(parts: Any) -> Measures:
    """All of them together."""
    total = Measures()
    for part in parts:
        total.merge(part)
    return total
