"""What stands out of its own series."""

from __future__ import annotations

import math

from ranklog.plan.spikes import spikes

FLAT = [1.0, 1.1] * 8


def test_a_value_far_from_the_running_median_is_a_spike() -> None:
    assert spikes([*FLAT, 9.0, 1.0], 8) == [16]


def test_a_ratio_compares_with_the_median_itself() -> None:
    assert spikes([*FLAT, 9.0, 12.0], 10, ratio=True) == [17]


def test_few_values_say_nothing() -> None:
    assert spikes([1.0, 1.0, 99.0], 2) == []


def test_nan_is_never_a_spike_and_infinity_always() -> None:
    assert spikes([*FLAT, math.nan, math.inf, -math.inf], 8) == [17, 18]


def test_a_flat_series_has_no_spike_in_its_last_digit() -> None:
    assert spikes([100.0] * 20 + [100.0 + 1e-9, 101.0], 8) == [21]


def test_a_new_level_stops_being_a_spike() -> None:
    found = spikes([1.0, 1.1] * 40 + [50.0] * 200, 8)
    assert found[0] == 80
    assert found[-1] < 200
