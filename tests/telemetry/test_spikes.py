"""Spikes of many series at once are those that `plan/spikes` finds in each alone."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ranklog.plan.spikes import spikes
from ranklog.telemetry.spikes import spike_mask

# whole numbers: medians and deviations of these are exact, whoever adds them up
NUMBERS = st.one_of(
    st.integers(-50, 50).map(float),
    st.integers(-5_000, 5_000).map(float),
    st.sampled_from([math.nan, math.inf, -math.inf]),
)
SERIES = st.lists(st.lists(NUMBERS, max_size=150), min_size=1, max_size=4)


@given(SERIES, st.sampled_from([0.5, 2.0, 8.0]), st.booleans())
def test_both_find_the_same(groups: list[list[float]], factor: float, ratio: bool) -> None:
    starts = np.cumsum([0, *map(len, groups)]).astype(np.int64)
    value = np.array([v for group in groups for v in group], np.float64)
    found = spike_mask(value, starts, factor, ratio=ratio)
    expected = [
        int(starts[at]) + place
        for at, group in enumerate(groups)
        for place in spikes(group, factor, ratio=ratio)
    ]
    assert np.flatnonzero(found).tolist() == expected
