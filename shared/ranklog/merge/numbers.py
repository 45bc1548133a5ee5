"""Numbers of many lines in few: count, min, max, sum, and a histogram that quantiles are read from.

A scan counts finite values by buckets of equal ratio: bucket i holds (G^(i-1), G^i] for positive
values, the mirror image for negative ones, and zero is its own. Counts add up, so that any split of the
lines merged in any order gives the same histogram. A bucket's middle is within ERROR of each of its
values: that is how far a quantile may be off, relative to the value. Count, min and max are exact; the
mean is as exact as its float.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

# Largest relative error of a quantile.
ERROR = 0.01
_RATIO = (1 + ERROR) / (1 - ERROR)
LN_RATIO = math.log(_RATIO)
_LN_MAX = math.log(sys.float_info.max)
# Added to a bucket's number, so that its sign can be the values'; |i| is below 38,000 for doubles.
BUCKET_OFFSET = 1 << 16
QUANTILES = (0.5, 0.9, 0.99)
# The columns of a key in a scan's groups.
PARTS = ("count", "nan", "inf", "min", "max", "sum", "buckets")


def part_name(part: str, key: str) -> str:
    """The column of an outcome that holds this part of the numbers of a key."""
    return f"{part}/stat:{key}"


def middle(bucket: int) -> float:
    """The value that stands for a bucket."""
    if bucket == 0:
        return 0.0
    # the last bucket ends past the largest double
    power = math.exp(min((abs(bucket) - BUCKET_OFFSET) * LN_RATIO, _LN_MAX))
    return math.copysign(power * (2 / (_RATIO + 1)), bucket)


@dataclass(slots=True)
class Numbers:
    """Values of one key in one group. `count` is of finite values; `sums` are of parts of them."""

    count: int = 0
    nan: int = 0
    inf: int = 0
    low: float | None = None
    high: float | None = None
    sums: list[float] = field(default_factory=list)
    buckets: dict[int, int] = field(default_factory=dict)

    def add(self, columns: Mapping[str, Sequence[Any]], key: str, row: int) -> None:
        """Take what a scan says of the key in one of its groups."""
        count, nan, inf, low, high, total, buckets = (
            columns[part_name(part, key)][row] for part in PARTS
        )
        self.nan += nan
        self.inf += inf
        if not count:
            return
        self.count += count
        self.low = low if self.low is None else min(low, self.low)
        self.high = high if self.high is None else max(high, self.high)
        self.sums.append(float(total))
        for bucket, lines in zip(*buckets, strict=True):
            self.buckets[bucket] = self.buckets.get(bucket, 0) + lines

    def quantile(self, share: float) -> float | None:
        """The value that `share` of the values lie before: value number floor(share * (count - 1))
        in ascending order, within ERROR of itself."""
        if self.low is None or self.high is None:
            return None
        place = math.floor(share * (self.count - 1))
        for bucket in sorted(self.buckets):
            place -= self.buckets[bucket]
            if place < 0:
                return min(max(middle(bucket), self.low), self.high)
        return self.high

    def mean(self) -> float | None:
        """The sum, rounded once whatever the order of its parts, by the count. Not finite only where a
        scan's own sum is not."""
        if not self.count:
            return None
        try:
            return math.fsum(self.sums) / self.count
        except OverflowError:
            return math.fsum(part / self.count for part in self.sums)
        except ValueError:  # of one infinity and the other
            return math.nan

    def to_json(self) -> dict[str, Any]:
        """As answers show it."""
        return {
            "count": self.count,
            "min": self.low,
            "max": self.high,
            "mean": _named(self.mean()),
            "nan": self.nan,
            "inf": self.inf,
            "quantiles": {f"{share:g}": self.quantile(share) for share in QUANTILES},
        }


def _named(value: float | None) -> float | str | None:
    """As JSON has it: NaN and infinities by their names."""
    if value is None or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
