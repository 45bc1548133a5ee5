"""`python -m tests.bench.detection`: precision and recall of `telemetry.detect` over seeded series.

Half of the series are as training makes them (levels, decays, warm-ups, ratios, with correlated noise,
heavy tails in some); the others have one event each of a stated size. An exponentially weighted baseline
stands beside it: what a dashboard alerts on today.

| event | size |
|---|---|
| spike | 1 to 3 values, 12 to 30 standard deviations of the noise |
| drift | moves by 5 to 10 standard deviations within 100 to 300 values and stays |
| plateau | a decay that stops for 250 to 500 values, or one value for 30 to 100 values |
| nan | 1 to 40 values that are NaN or infinite |
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ranklog.telemetry.detect import KINDS, detect
from ranklog.telemetry.table import KINDS as COLUMN_TYPES
from ranklog.telemetry.table import Grouped, PointTable

F64 = npt.NDArray[np.float64]
VALUES = 1_500
MARK = 0.95


@dataclass(frozen=True, slots=True)
class Case:
    """A series and what was put into it: None, or (kind, first, last)."""

    values: F64
    better: int
    truth: tuple[str, int, int] | None


@dataclass(slots=True)
class Score:
    """Events that were found and are there, are not there, and those that were missed."""

    hits: int = 0
    false: int = 0
    missed: int = 0

    @property
    def precision(self) -> float:
        return self.hits / max(1, self.hits + self.false)

    @property
    def recall(self) -> float:
        return self.hits / max(1, self.hits + self.missed)


def cases(seed: int, of_each: int) -> list[Case]:
    """`of_each` series with an event of each kind, and as many without any."""
    rng = np.random.default_rng(seed)
    made = []
    for kind in KINDS:
        made += [_with_event(rng, kind) for _ in range(of_each)]
        made += [Case(*_plain(rng)[:2], None) for _ in range(of_each)]
    return made


def _noise(rng: np.random.Generator) -> tuple[F64, float]:
    """Correlated noise of standard deviation 1, heavy-tailed in a quarter of the series."""
    phi = rng.uniform(0.0, 0.5)
    heavy = rng.random() < 0.25
    shocks = rng.standard_t(6, VALUES) / np.sqrt(1.5) if heavy else rng.standard_normal(VALUES)
    noise = np.empty(VALUES)
    noise[0] = shocks[0]
    for i in range(1, VALUES):
        noise[i] = phi * noise[i - 1] + np.sqrt(1 - phi * phi) * shocks[i]
    return noise, phi


def _plain(rng: np.random.Generator) -> tuple[F64, int, float]:
    """(values, better, standard deviation of the noise): a level, a decay or a warm-up."""
    noise, _ = _noise(rng)
    at = np.arange(VALUES)
    scale = 10.0 ** rng.uniform(-3, 3)
    sigma = rng.uniform(0.01, 0.05)
    shape = rng.integers(3)
    if shape == 0:
        base, better = np.ones(VALUES), 0
    elif shape == 1:  # a loss: a power law
        base, better = (1 + at / 30) ** -rng.uniform(0.2, 0.5), -1
    else:  # a rate that warms up
        base, better = 1 - 0.3 * np.exp(-at / rng.uniform(20, 60)), 1
    return scale * (base + sigma * noise), better, scale * sigma


def _steady(rng: np.random.Generator) -> tuple[F64, F64, float]:
    """(trend, noise, standard deviation) of a decay that goes on and on."""
    noise, _ = _noise(rng)
    sigma = rng.uniform(0.01, 0.03)
    fall = rng.uniform(0.010, 0.020) * sigma * np.arange(VALUES) * 4
    return 3 - fall, sigma * noise, sigma


def _with_event(rng: np.random.Generator, kind: str) -> Case:
    return {"spike": _spike, "drift": _drift, "plateau": _plateau, "nan": _nan}[kind](rng)


def _spike(rng: np.random.Generator) -> Case:
    values, better, sigma = _plain(rng)
    first, length = int(rng.integers(150, VALUES - 100)), int(rng.integers(1, 4))
    values[first : first + length] += sigma * rng.uniform(12, 30) * rng.choice([-1, 1])
    return Case(values, better, ("spike", first, first + length - 1))


def _drift(rng: np.random.Generator) -> Case:
    noise, _ = _noise(rng)
    scale, sigma = 10.0 ** rng.uniform(-3, 3), rng.uniform(0.01, 0.05)
    first, length = int(rng.integers(300, VALUES - 450)), int(rng.integers(100, 301))
    part = np.clip((np.arange(VALUES) - first) / length, 0, 1)
    moved = part * rng.uniform(5, 10) * sigma * rng.choice([-1, 1])
    return Case(scale * (1 + moved + sigma * noise), 0, ("drift", first, first + length))


def _plateau(rng: np.random.Generator) -> Case:
    if rng.random() < 0.3:
        values, better, _ = _plain(rng)
        first, length = int(rng.integers(150, VALUES - 200)), int(rng.integers(30, 101))
        values[first : first + length] = values[first]
        return Case(values, better, ("plateau", first, first + length - 1))
    trend, noise, _ = _steady(rng)
    first, length = int(rng.integers(400, VALUES - 600)), int(rng.integers(250, 501))
    held = np.concatenate([trend[:first], np.full(length, trend[first]), trend[first:]])[:VALUES]
    return Case(held + noise, -1, ("plateau", first, first + length - 1))


def _nan(rng: np.random.Generator) -> Case:
    values, better, _ = _plain(rng)
    first, length = int(rng.integers(50, VALUES - 60)), int(rng.integers(1, 41))
    values[first : first + length] = rng.choice([np.nan, np.inf, -np.inf])
    return Case(values, better, ("nan", first, first + length - 1))


Found = list[tuple[str, int, int, int]]


def ours(made: list[Case]) -> Found:
    """(kind, case, first, last) of what `detect` finds."""
    columns = {
        name: np.zeros(len(made) * VALUES, kind)
        for name, kind in COLUMN_TYPES.items()
        if name != "value"
    }
    columns["iteration"] = np.tile(np.arange(VALUES), len(made))
    table = PointTable(value=np.concatenate([case.values for case in made]), **columns)
    points = Grouped(table, np.arange(len(made) + 1, dtype=np.int64) * VALUES)
    events = detect(points, better=[case.better for case in made])
    return [
        (e.kind, e.group, e.first - e.group * VALUES, e.last - e.group * VALUES) for e in events
    ]


def exponential(made: list[Case]) -> Found:
    """The baseline: mean and variance with a weight of 0.05 for the newest value. A value over 4
    deviations is a spike; a fast mean over 3 deviations from a slow one a drift; a deviation under a
    tenth of the usual a plateau."""
    found: Found = []
    for number, case in enumerate(made):
        hit: dict[str, list[int]] = {kind: [] for kind in KINDS}
        mean = slow = case.values[0]
        variance = usual = 0.0
        for i, value in enumerate(case.values.tolist()):
            if not np.isfinite(value):
                hit["nan"].append(i)
                continue
            deviation = np.sqrt(variance)
            if i > 50 and abs(value - mean) > 4 * deviation:
                hit["spike"].append(i)
            if i > 200 and abs(mean - slow) > 3 * deviation:
                hit["drift"].append(i)
            if i > 200 and deviation < 0.1 * np.sqrt(usual):
                hit["plateau"].append(i)
            variance = 0.95 * (variance + 0.05 * (value - mean) ** 2)
            usual += 0.002 * ((value - mean) ** 2 - usual)
            mean += 0.05 * (value - mean)
            slow += 0.005 * (value - slow)
        for kind, rows in hit.items():
            found += [(kind, number, a, b) for a, b in _joined(rows, 20)]
    return found


def _joined(rows: list[int], gap: int) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for row in rows:
        if joined and row - joined[-1][1] <= gap:
            joined[-1] = (joined[-1][0], row)
        else:
            joined.append((row, row))
    return joined


def score(made: list[Case], found: Found) -> dict[str, Score]:
    """Per kind. An event hits where it overlaps the one that was put in; each counts once."""
    scores = {kind: Score() for kind in KINDS}
    hit = set()
    for kind, number, first, last in found:
        truth = made[number].truth
        if truth is not None and truth[0] == kind and first <= truth[2] and truth[1] <= last:
            if number not in hit:
                scores[kind].hits += 1
            hit.add(number)
        else:
            scores[kind].false += 1
    for number, case in enumerate(made):
        if case.truth is not None and number not in hit:
            scores[case.truth[0]].missed += 1
    return scores


def main(seed: int = 1, of_each: int = 200) -> int:
    made = cases(seed, of_each)
    print(f"{len(made)} series of {VALUES} values, seed {seed}")
    print(f"{'':10}{'ranklog':>20}{'exponential':>20}")
    print(f"{'':10}{'precision':>10}{'recall':>10}{'precision':>10}{'recall':>10}")
    methods: tuple[Callable[[list[Case]], Found], ...] = (ours, exponential)
    results = [score(made, method(made)) for method in methods]
    for kind in KINDS:
        cells = [f(r[kind]) for r in results for f in (_precision, _recall)]
        print(f"{kind:10}" + "".join(f"{cell:10.3f}" for cell in cells))
    good = all(min(s.precision, s.recall) >= MARK for s in results[0].values())
    print("mark 0.95:", "met" if good else "missed")
    return 0 if good else 1


def _precision(one: Score) -> float:
    return one.precision


def _recall(one: Score) -> float:
    return one.recall


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:3])))
