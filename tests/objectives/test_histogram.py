"""Histograms add up in any order, and their quantiles are never understated."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranklog.objectives.histogram import LAST, Histogram, bucket_of, edge, rank_of

MS = st.floats(0, 2.0**33) | st.integers(0, 1000).map(edge)
SHARES = st.fractions(Fraction(1, 1000), 1)


def histogram_of(values: list[float]) -> Histogram:
    made = Histogram()
    for value in values:
        made.add(value)
    return made


@pytest.mark.parametrize(
    ("ms", "bucket"),
    [
        (-5.0, 0),
        (0.0, 0),
        (math.nan, 0),
        (1.0, 0),
        (1.01, 1),
        (2.0, 8),
        (2.0001, 9),
        (edge(LAST), LAST),
        (1e300, LAST),
    ],
)
def test_a_time_is_in_the_first_bucket_whose_edge_it_does_not_exceed(
    ms: float, bucket: int
) -> None:
    assert bucket_of(ms) == bucket


@given(MS)
def test_a_bucket_holds_what_is_above_the_edge_before_it(ms: float) -> None:
    bucket = bucket_of(ms)
    assert bucket == LAST or ms <= edge(bucket)
    assert bucket == 0 or ms > edge(bucket - 1)


@given(st.lists(st.lists(MS, max_size=20), max_size=6), st.randoms(use_true_random=False))
def test_parts_merged_in_any_order_are_the_whole(parts: list[list[float]], random: object) -> None:
    whole = histogram_of([ms for part in parts for ms in part])
    random.shuffle(parts)  # type: ignore[attr-defined]
    total = Histogram()
    for part in parts:
        total.merge(histogram_of(part))
    assert total == whole
    assert Histogram.from_json(json.loads(json.dumps(total.to_json()))) == whole


@given(st.lists(MS, min_size=1, max_size=200), SHARES)
def test_a_quantile_is_never_understated_and_at_most_a_twelfth_over(
    values: list[float], share: Fraction
) -> None:
    exact = sorted(values)[rank_of(share, len(values)) - 1]
    said = histogram_of(values).quantile(share)
    assert said is not None
    if exact <= edge(LAST):
        assert exact <= said
    assert said <= max(1.0, exact * (1 + 1 / 11))


@given(st.lists(MS, min_size=1, max_size=200), MS)
def test_what_is_over_a_limit_is_never_fewer_than_it_was(values: list[float], limit: float) -> None:
    exact = sum(value > limit for value in values if value <= edge(LAST))
    assert histogram_of(values).over(limit) >= exact


def test_nothing_measured_has_no_quantile() -> None:
    assert Histogram().quantile(Fraction(1, 2)) is None


@pytest.mark.parametrize("said", [{"-1": 1}, {"257": 1}, {"3": -1}, {"x": 1}])
def test_what_is_no_histogram_is_refused(said: dict[str, int]) -> None:
    with pytest.raises(ValueError):
        Histogram.from_json(said)
