"""Numbers of many lines in few: any split, merged in any order, says the same."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranklog.merge.numbers import (
    BUCKET_OFFSET,
    ERROR,
    LN_RATIO,
    PARTS,
    QUANTILES,
    Numbers,
    middle,
    part_name,
)

FINITE = st.floats(allow_nan=False, allow_infinity=False, width=64)


def bucket_of(value: float) -> int:
    """As a scan counts it."""
    if value == 0:
        return 0
    place = math.ceil(math.log(abs(value)) / LN_RATIO) + BUCKET_OFFSET
    return place if value > 0 else -place


def part_of(values: Sequence[float]) -> dict[str, list[Any]]:
    """What a scan says of some values, as one row of columns."""
    finite = [value for value in values if math.isfinite(value)]
    buckets: dict[int, int] = {}
    for value in finite:
        buckets[bucket_of(value)] = buckets.get(bucket_of(value), 0) + 1
    found = (
        len(finite),
        sum(map(math.isnan, values)),
        sum(map(math.isinf, values)),
        min(finite, default=None),
        max(finite, default=None),
        math.fsum(finite) if finite else None,
        [list(buckets.keys()), list(buckets.values())],
    )
    return {part_name(part, "x"): [value] for part, value in zip(PARTS, found, strict=True)}


def merged(parts: Sequence[Sequence[float]]) -> Numbers:
    numbers = Numbers()
    for part in parts:
        numbers.add(part_of(part), "x", 0)
    return numbers


# Below a thousandth of the largest double, so that no sum is infinite.
VALUES = st.lists(FINITE.map(lambda value: value / 1e6), max_size=60)


@settings(max_examples=200, deadline=None)
@given(values=VALUES, cuts=st.lists(st.integers(0, 60), max_size=5), seed=st.integers(0, 99))
def test_any_split_in_any_order_is_the_whole(
    values: list[float], cuts: list[int], seed: int
) -> None:
    edges = sorted({0, len(values), *(min(cut, len(values)) for cut in cuts)})
    parts = [values[a:b] for a, b in pairwise(edges)]
    in_order = merged(parts).to_json()
    random.Random(seed).shuffle(parts)
    assert merged(parts).to_json() == in_order
    whole = merged([values]).to_json()
    mean, expected = in_order.pop("mean"), whole.pop("mean")
    assert in_order == whole
    if values:
        magnitude = math.fsum(map(abs, values)) / len(values)
        assert mean == pytest.approx(expected, rel=1e-12, abs=1e-12 * magnitude)


@settings(max_examples=200, deadline=None)
@given(values=VALUES.filter(bool))
def test_a_quantile_is_within_its_error_of_the_value_in_that_place(values: list[float]) -> None:
    numbers = merged([values])
    for share in QUANTILES:
        exact = sorted(values)[math.floor(share * (len(values) - 1))]
        found = numbers.quantile(share)
        if abs(exact) > 1e-300:  # subnormal numbers have fewer digits than the error asks for
            assert found == pytest.approx(exact, rel=ERROR * (1 + 1e-9))


def test_nan_and_infinities_are_counted_and_take_no_part() -> None:
    shown = merged([[math.nan, 1.0, math.inf], [-math.inf, 3.0]]).to_json()
    assert (shown["count"], shown["nan"], shown["inf"]) == (2, 1, 2)
    assert (shown["min"], shown["max"], shown["mean"]) == (1.0, 3.0, 2.0)


def test_sums_past_the_largest_double_are_told_as_json_can() -> None:
    assert merged([[1.5e308], [1.5e308]]).mean() == pytest.approx(1.5e308)
    numbers = Numbers(count=2, low=-1.5e308, high=1.5e308, sums=[math.inf, -math.inf])
    assert numbers.to_json()["mean"] == "NaN"
    numbers.sums = [math.inf, 1.0]
    assert numbers.to_json()["mean"] == "Infinity"


def test_no_values_have_no_numbers() -> None:
    shown = Numbers().to_json()
    assert shown["quantiles"] == {"0.5": None, "0.9": None, "0.99": None}
    assert (shown["count"], shown["min"], shown["mean"]) == (0, None, None)


def test_one_value_is_its_own_quantile_exactly() -> None:
    assert merged([[7.25]]).to_json()["quantiles"] == {"0.5": 7.25, "0.9": 7.25, "0.99": 7.25}


@pytest.mark.parametrize("value", [1e-300, 1e-3, 1.0, 7.0, 1e300, 1.7e308, -2.5])
def test_the_middle_of_a_bucket_is_near_all_of_it(value: float) -> None:
    assert middle(bucket_of(value)) == pytest.approx(value, rel=ERROR * (1 + 1e-9))
