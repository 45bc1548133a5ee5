"""Down-sampling: what stays is enough to see what there is."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ranklog.telemetry.downsample import chosen
from tests.telemetry.tables import table_of

VALUES = st.lists(
    st.one_of(st.floats(allow_nan=True, allow_infinity=True, width=32), st.none(), st.just(1.0)),
    min_size=1,
    max_size=400,
)


@given(VALUES, VALUES, st.integers(8, 60))
def test_extremes_ends_and_every_kind_of_no_number_stay(
    one: list[float | None], other: list[float | None], most: int
) -> None:
    points = table_of(one, other)
    keep = chosen(points, most)
    for values, mask in ((one, keep[: len(one)]), (other, keep[len(one) :])):
        kept = [value for value, stays in zip(values, mask.tolist(), strict=True) if stays]
        assert kinds(kept) == kinds(values)
        numbers, left = finite(values), finite(kept)
        if numbers:
            assert (left[0], left[-1]) == (numbers[0], numbers[-1])
            assert (min(left), max(left)) == (min(numbers), max(numbers))
        if len(values) <= most:
            assert kept == values or all(mask)
        assert len(left) <= max(most, len(numbers) if len(values) <= most else 0)


def kinds(values: list[float | None]) -> set[str]:
    """Which kinds of values there are, and at which end each."""
    names = ["none" if v is None else str(v) for v in values if v is None or not math.isfinite(v)]
    return set(names)


def finite(values: list[float | None]) -> list[float]:
    return [v for v in values if v is not None and math.isfinite(v)]


def test_a_stretch_of_nan_keeps_both_its_ends() -> None:
    values: list[float | None] = [1.0] * 500 + [math.nan] * 40 + [1.0] * 460
    keep = chosen(table_of(values), 16)
    nan = [at for at in np.flatnonzero(keep).tolist() if math.isnan(values[at] or 0.0)]
    assert (nan[0], nan[-1]) == (500, 539)


def test_one_spike_among_many_values_stays() -> None:
    values = [0.0] * 100_000
    values[77_777] = 9.0
    keep = chosen(table_of(values), 100)
    assert keep[77_777] and int(keep.sum()) <= 100
