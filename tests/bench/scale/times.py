"""Times drawn by chance, quantiles by weight, and what was measured at some sizes as a function of the size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


class Times(Protocol):
    """How long something takes."""

    def draw(self, random: np.random.Generator) -> float:
        """Seconds, by chance."""
        ...

    def slowest(self, random: np.random.Generator, rounds: int, wide: int) -> float:
        """Seconds of so many rounds one after the other, of `wide` at once, the slowest of which counts."""
        ...

    @property
    def mean(self) -> float:
        """Seconds in the mean."""
        ...


@dataclass(frozen=True, slots=True)
class Fixed:
    """Always the same."""

    mean: float

    def draw(self, random: np.random.Generator) -> float:
        """See Times."""
        return self.mean

    def slowest(self, random: np.random.Generator, rounds: int, wide: int) -> float:
        """See Times."""
        return rounds * self.mean


@dataclass(frozen=True, slots=True)
class Lognormal:
    """By median and 99th percentile: a long tail to the slow side, as of requests over a network."""

    median: float
    p99: float

    @property
    def _sigma(self) -> float:
        return math.log(self.p99 / self.median) / 2.326

    @property
    def mean(self) -> float:
        """See Times."""
        return self.median * math.exp(self._sigma**2 / 2)

    def draw(self, random: np.random.Generator) -> float:
        """See Times."""
        return self.median * math.exp(self._sigma * random.standard_normal())

    def slowest(self, random: np.random.Generator, rounds: int, wide: int) -> float:
        """See Times. The largest of n draws is where a uniform's n-th root is."""
        shares = random.random(rounds) ** (1 / max(1, wide))
        return float(self.median * np.exp(self._sigma * _normal(shares)).sum())


@dataclass(frozen=True, slots=True)
class Measured:
    """One of the times that were measured, each as likely as the others."""

    samples: tuple[float, ...]

    @property
    def mean(self) -> float:
        """See Times."""
        return sum(self.samples) / len(self.samples)

    def draw(self, random: np.random.Generator) -> float:
        """See Times."""
        return self.samples[int(random.random() * len(self.samples))]

    def slowest(self, random: np.random.Generator, rounds: int, wide: int) -> float:
        """See Times."""
        shares = random.random(rounds) ** (1 / max(1, wide))
        return float(np.quantile(np.asarray(self.samples), shares).sum())


def _normal(shares: Floats) -> Floats:
    """Where the standard normal distribution has these shares below it (Abramowitz and Stegun 26.2.23,
    error below 4.5e-4)."""
    tail = np.minimum(shares, 1 - shares).clip(1e-12)
    t = np.sqrt(-2 * np.log(tail))
    above = 2.515517 + t * (0.802853 + t * 0.010328)
    below = 1 + t * (1.432788 + t * (0.189269 + t * 0.001308))
    found: Floats = np.where(shares < 0.5, -1.0, 1.0) * (t - above / below)
    return found


def quantile(values: Sequence[float], weights: Sequence[float], share: float) -> float:
    """The value below which `share` of the weight lies; NaN of nothing."""
    if not len(values):
        return math.nan
    order = np.argsort(np.asarray(values))
    cumulated = np.cumsum(np.asarray(weights, float)[order])
    at = int(np.searchsorted(cumulated, share * cumulated[-1]))
    return float(np.asarray(values, float)[order][min(at, len(order) - 1)])


@dataclass(frozen=True, slots=True)
class Curve:
    """What was measured at some sizes, in between by straight lines over the logarithm of the size; a size
    outside has what the nearest has."""

    sizes: tuple[float, ...]
    values: tuple[float, ...]

    def at(self, size: float) -> float:
        """The value at a size."""
        return float(np.interp(math.log(max(size, 1e-9)), np.log(self.sizes), self.values))

    def to_json(self) -> dict[str, Any]:
        """Both lists."""
        return {"sizes": list(self.sizes), "values": list(self.values)}


@dataclass(frozen=True, slots=True)
class Linear:
    """`fixed` for one, and `per` for each unit in it."""

    fixed: float
    per: float

    def at(self, size: float) -> float:
        """The value at a size."""
        return self.fixed + self.per * size

    @classmethod
    def fit(cls, sizes: Sequence[float], values: Sequence[float]) -> Linear:
        """Least squares of relative errors, neither part below zero."""
        x, y = np.asarray(sizes, float), np.asarray(values, float)
        rows = np.stack([1 / y, x / y], axis=1)
        fixed, per = np.linalg.lstsq(rows, np.ones(len(y)), rcond=None)[0]
        if fixed < 0:
            fixed, per = 0.0, float((y / x).mean())
        if per < 0:
            fixed, per = float(y.mean()), 0.0
        return cls(float(fixed), float(per))
