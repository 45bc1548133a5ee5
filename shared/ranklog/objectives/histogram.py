"""How long things took, in few numbers: buckets of equal ratio that add up whatever the order.

Bucket 0 holds what took at most 1 ms, bucket i > 0 what took more than 2**((i-1)/8) and at most 2**(i/8) ms;
the last one, 2**32 ms, also what took longer. A quantile is the upper edge of its bucket: never understated,
overstated by a twelfth at most. `over` counts by the same edges, so that a quantile is within a limit exactly
where few enough values are over it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

PER_DOUBLING = 8
LAST = 32 * PER_DOUBLING


def edge(bucket: int) -> float:
    """The largest number of ms in a bucket."""
    return float(2.0 ** (bucket / PER_DOUBLING))


def bucket_of(ms: float) -> int:
    """The bucket of a time; what is not above 0 (clocks differ) took no time."""
    if not ms > 1:
        return 0
    if ms >= edge(LAST):
        return LAST
    bucket = math.ceil(math.log2(ms) * PER_DOUBLING)
    while edge(bucket) < ms:  # log2 is rounded
        bucket += 1
    while bucket > 0 and edge(bucket - 1) >= ms:
        bucket -= 1
    return bucket


def rank_of(share: Fraction, count: int) -> int:
    """Of `count` values in order the number, from 1, of the one that `share` of them do not exceed."""
    return max(1, math.ceil(share * count))


@dataclass(slots=True)
class Histogram:
    """Counts by bucket; there is no bucket without a count."""

    buckets: Counter[int] = field(default_factory=Counter)

    def add(self, ms: float, count: int = 1) -> None:
        """`count` things took `ms`."""
        if count > 0:
            self.buckets[bucket_of(ms)] += count

    def merge(self, other: Histogram) -> None:
        """Take the other's counts in."""
        self.buckets.update(other.buckets)

    @property
    def count(self) -> int:
        return self.buckets.total()

    def quantile(self, share: Fraction) -> float | None:
        """What `share` of the values do not exceed, nearest rank; None where there is no value."""
        left = rank_of(share, self.count)
        for bucket in sorted(self.buckets):
            left -= self.buckets[bucket]
            if left <= 0:
                return edge(bucket)
        return None

    def over(self, limit_ms: float) -> int:
        """How many may have taken longer than the limit."""
        return sum(count for bucket, count in self.buckets.items() if edge(bucket) > limit_ms)

    def to_json(self) -> dict[str, int]:
        return {str(bucket): self.buckets[bucket] for bucket in sorted(self.buckets)}

    @classmethod
    def from_json(cls, said: Mapping[str, int]) -> Histogram:
        """Inverse of `to_json`. Raises ValueError, TypeError."""
        made = cls()
        for name, count in said.items():
            bucket = int(name)
            if not 0 <= bucket <= LAST or count < 0:
                raise ValueError(f"bucket {bucket} with {count}")
            if count:
                made.buckets[bucket] += int(count)
        return made
