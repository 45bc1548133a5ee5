"""Aggregates are those of numpy over the numbers of each group; what is none is counted apart."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranklog.errors import BadInput
from ranklog.telemetry.aggregate import AGGREGATES, aggregated
from tests.telemetry.tables import table_of

GROUPS = st.lists(
    st.lists(
        st.one_of(st.floats(-1e6, 1e6), st.just(math.nan), st.just(math.inf), st.none()),
        min_size=1,
        max_size=20,
    ),
    min_size=1,
    max_size=6,
)
REFERENCE = {
    "mean": np.mean, "min": np.min, "max": np.max, "spread": np.ptp, "std": np.std,
    "median": np.median, "sum": np.sum, "count": len, "last": lambda values: values[-1],
}  # fmt: skip


@given(GROUPS)
def test_every_aggregate_is_that_of_its_numbers(groups: list[list[float | None]]) -> None:
    points = table_of(*groups)
    for how, reference in REFERENCE.items():
        found = aggregated(points, how)
        for at, values in enumerate(groups):
            numbers = np.array([v for v in values if v is not None and math.isfinite(v)])
            if len(numbers):
                assert found.value[at] == pytest.approx(reference(numbers), rel=1e-9, abs=1e-6)
            else:
                assert math.isnan(found.value[at])
            assert (found.count[at], found.missing[at]) == (len(numbers), values.count(None))
            assert found.inf[at] == sum(v is not None and math.isinf(v) for v in values)
            assert found.nan[at] == sum(v is not None and math.isnan(v) for v in values)


def test_the_table_of_aggregates_is_the_one_that_is_tested() -> None:
    assert set(REFERENCE) == set(AGGREGATES)


def test_an_unknown_aggregate_is_refused_with_the_known_ones() -> None:
    with pytest.raises(BadInput) as caught:
        aggregated(table_of([1.0]), "mode")
    assert "spread" in (caught.value.hint or "")
