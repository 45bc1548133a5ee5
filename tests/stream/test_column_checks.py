"""What is looked at byte by byte says the same as looking at each number."""

from __future__ import annotations

from array import array
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from ranklog.stream.columns import all_at_most, rows_by_stream

_SMALL = st.integers(0, 40)


@given(st.lists(st.one_of(_SMALL, st.integers(0, 2**16 - 1))), st.integers(0, 40))
def test_rows_are_counted_by_stream(numbers: list[int], streams: int) -> None:
    found = rows_by_stream(array("H", numbers).tobytes(), streams)
    counts = Counter(numbers)
    within = {number: rows for number, rows in counts.items() if number < streams}
    assert (found == within) == (len(within) == len(counts))
    assert found == within or any(number >= streams for number in found)


@given(st.lists(st.one_of(_SMALL, st.integers(0, 2**32 - 1))), st.integers(0, 300))
def test_no_number_is_larger(numbers: list[int], most: int) -> None:
    data = array("I", numbers).tobytes()
    assert all_at_most(data, most) == (max(numbers, default=0) <= most)
