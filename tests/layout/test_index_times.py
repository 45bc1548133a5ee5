"""Lines of call sites by time: a round trip, damage, and when an index has them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranklog.layout.index_times import times_from_list, times_to_list
from ranklog.layout.tables import _site_times
from ranklog.limits import SECOND_NS, SITE_TIMES_ROWS_PER_COUNT
from ranklog.model.index import SiteTimes

COUNTS = st.integers(1, 5).flatmap(
    lambda width: st.lists(
        st.lists(st.integers(0, 10**6), min_size=width, max_size=width).map(tuple),
        min_size=1,
        max_size=8,
    )
)


@settings(max_examples=100, deadline=None)
@given(counts=COUNTS, first=st.integers(0, 2**40), width_ns=st.integers(1, 2**50))
def test_what_is_written_is_read(counts: list[tuple[int, ...]], first: int, width_ns: int) -> None:
    times = SiteTimes(width_ns, first, tuple(counts))
    assert times_from_list(times_to_list(times)) == times


def test_counts_that_are_cut_are_damage() -> None:
    good = times_to_list(SiteTimes(SECOND_NS, 5, ((1, 2), (3, 4))))
    with pytest.raises(ValueError, match="cut"):
        times_from_list([*good[:2], 3, good[3]])
    with pytest.raises(ValueError, match="cut"):
        times_from_list([0, *good[1:]])


@pytest.mark.parametrize(
    ("seconds", "rows", "width_s"),
    [
        (20, 10_000, 1),
        (20, 20 * SITE_TIMES_ROWS_PER_COUNT - 1, 10),  # too few rows for 20 counts
        (65, 10_000, 10),  # too many buckets of a second
        (3_000, 10_000, 60),
        (86_400 * 300, 100_000, None),  # too many buckets of a day
        (20, SITE_TIMES_ROWS_PER_COUNT - 1, None),
        (0, 10_000, None),  # bounds say it
    ],
)
def test_the_narrowest_buckets_that_are_few_are_taken(
    seconds: int, rows: int, width_s: int | None
) -> None:
    ts = np.linspace(0, max(seconds * SECOND_NS - 1, 0), rows).astype(np.int64)
    found = _site_times(ts, np.zeros(rows, np.int64), [0])
    assert (found and found.width_ns) == (width_s and width_s * SECOND_NS)
    if found is not None:
        assert sum(map(sum, found.counts)) == rows
