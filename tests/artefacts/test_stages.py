"""Lags by stage: what a quantile is made of adds up to it."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from tests.artefacts.freshness import Freshness
from tests.artefacts.stages import STAGES, Passage, by_time, medians, share_of, slowest

times = st.floats(0, 100)
passages = st.builds(
    lambda put, ends, last: Passage(put, (*(put + end for end in ends), put + last)),
    times,
    st.lists(times, min_size=len(STAGES) - 1, max_size=len(STAGES) - 1),
    times,
)


def passage(*spent: float, put_s: float = 0.0) -> Passage:
    ends = [put_s]
    for one in spent:
        ends.append(ends[-1] + one)
    return Passage(put_s, tuple(ends[1:]))


@given(passages)
def test_stages_add_up_to_the_lag_in_whichever_order_they_ended(line: Passage) -> None:
    spent = line.spent_s
    assert tuple(spent) == STAGES and min(spent.values()) >= 0
    assert math.isclose(sum(spent.values()), line.lag_s, abs_tol=1e-9)


def test_what_is_asked_before_its_function_has_returned_waits_for_no_turn() -> None:
    # stored at 3, asked at 2, seen at 4
    line = Passage(0.0, (0.0, 1.0, 1.5, 3.0, 2.0, 4.0))
    assert line.spent_s == {
        "put": 0,
        "poll": 1,
        "window": 0.5,
        "ingest": 1.5,
        "turn": 0,
        "answer": 1,
    }


def test_the_slowest_are_told_by_what_they_waited_for() -> None:
    fast = [passage(0, 0.5, 1, 0.1, 0, 0.1) for _ in range(99)]
    slow = passage(0, 1, 1, 0.1, 0, 3)
    assert math.isclose(slowest([*fast, slow])["answer"], 3)
    assert math.isclose(medians([*fast, slow])["answer"], 0.1)


def test_lags_that_grow_show_in_their_stretches() -> None:
    lines = [passage(0, 0, 0, 0, 0, 1 + put, put_s=float(put)) for put in range(30)]
    found = by_time(lines, 15.0)
    assert [one["from_s"] for one in found] == [0, 15]
    assert [one["max_s"] for one in found] == [15, 30]


def test_a_quantile_of_few_is_the_largest() -> None:
    assert share_of([3.0, 1.0, 2.0], 0.99) == 3.0


def test_a_line_counts_from_the_first_answer_that_has_it() -> None:
    found = Freshness()
    for text, put_s in (("early", 0.0), ("late", 7.0)):
        found.put_s[text], found.said_ns[text], found.frame_of[text] = put_s, 1, text.encode()
        found.see(text, put_s + 1, put_s + 2)
        found.see(text, put_s + 3, put_s + 4)
    assert [line.lag_s for line in found.lines] == [2.0] and found.cold_s == 2.0
    assert found.lost == 0 and not found.said_ns
