"""Detection: the mark on fixed seeds, and what it must not take for an event."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ranklog.telemetry.detect import KINDS, detect
from tests.bench.detection import MARK, cases, exponential, ours, score
from tests.telemetry.tables import table_of


@pytest.fixture(scope="module")
def made() -> list:  # type: ignore[type-arg]
    return cases(seed=7, of_each=50)


def test_precision_and_recall_meet_the_mark(made: list) -> None:  # type: ignore[type-arg]
    scores = score(made, ours(made))
    low = {kind: (one.precision, one.recall) for kind, one in scores.items()}
    assert all(min(pair) >= MARK for pair in low.values()), low


def test_an_exponential_baseline_is_far_from_it(made: list) -> None:  # type: ignore[type-arg]
    few = made[::4]
    scores = score(few, exponential(few))
    assert min(scores[kind].precision for kind in ("spike", "drift")) < 0.5


def noise(n: int, seed: int = 0) -> list[float]:
    return np.random.default_rng(seed).normal(0, 0.1, n).tolist()


def kinds_in(*series: list[float | None], better: int = 0) -> list[tuple[str, int, int]]:
    events = detect(table_of(*series), KINDS, [better] * len(series))
    return [(event.kind, event.first, event.last) for event in events]


def test_a_spike_is_where_it_is() -> None:
    values = [1 + v for v in noise(200)]
    values[120] = 5.0
    assert kinds_in(values) == [("spike", 120, 120)]


def test_a_step_is_a_drift_and_no_spike() -> None:
    values = [1 + v for v in noise(400)]
    values[200:] = [v + 3 for v in values[200:]]
    (event,) = kinds_in(values)
    assert event[0] == "drift" and event[1] <= 200 <= event[2]


def test_going_the_better_way_is_no_drift() -> None:
    values = [3 + v - max(0, i - 150) / 50 for i, v in enumerate(noise(400))]
    assert [kind for kind, _, _ in kinds_in(values)] == ["drift"]
    assert kinds_in(values, better=-1) == []


def test_a_stretch_of_nan_is_one_event_and_not_measured_is_none() -> None:
    values: list[float | None] = [
        *noise(50),
        *([math.nan] * 3),
        math.inf,
        *noise(50, 1),
        None,
        None,
    ]
    assert kinds_in(values) == [("nan", 50, 53)]


def test_a_series_that_never_was_a_number_has_no_event() -> None:
    assert kinds_in([math.nan] * 50) == []


def test_the_first_values_are_a_beginning_and_no_spike() -> None:
    assert kinds_in([100.0, 50.0, *[1 + v for v in noise(100)]]) == []


def test_a_stuck_value_is_a_plateau_and_a_count_that_repeats_is_none() -> None:
    values = [1 + v for v in noise(300)]
    values[100:140] = [values[100]] * 40
    assert kinds_in(values) == [("plateau", 100, 139)]
    assert kinds_in([float(i // 20) for i in range(300)], better=1) == []
    assert kinds_in([4.0] * 300) == []


def test_series_do_not_disturb_each_other() -> None:
    calm = [1 + v for v in noise(200)]
    odd = list(calm)
    odd[100] = 9.0
    events = detect(table_of(calm, odd, calm[:50]), KINDS, None)
    assert [(event.kind, event.group) for event in events] == [("spike", 1)]


def test_only_what_is_asked_for_is_found() -> None:
    values = [1 + v for v in noise(200)]
    values[120], values[50] = 5.0, math.nan
    events = detect(table_of(values), ["nan"], None)
    assert [event.kind for event in events] == ["nan"]
