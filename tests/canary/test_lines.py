"""A round's lines: every one that is missing, doubled or altered is told, whatever a search returns."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranklog.canary.lines import Found, Outcome, Round
from ranklog.model.answer import Line
from ranklog.objectives import names

ONE = Round("0123456789abcdef", 5, "2026-03-01")
MS = 1_000_000


def line(text: str, ts_ns: int = 0, seq: int = 0) -> Line:
    return Line(
        "s", seq, ts_ns, "r", "l", 0, 0, 0, "h", "c", None, 10, None, None, None, text, None
    )


def outcome_of(numbers: list[int], others: list[str]) -> Outcome:
    found = Found(ONE)
    texts = [ONE.texts()[number] for number in numbers] + others
    found.look([line(text) for text in texts], 1)
    return found.outcome(len(texts), 0.0)


@given(st.lists(st.integers(0, 4), max_size=12), st.lists(st.just("x"), max_size=3))
def test_what_is_not_there_once_is_told(numbers: list[int], others: list[str]) -> None:
    times = Counter(numbers)
    outcome = outcome_of(numbers, others)
    assert outcome.missing == 5 - len(times)
    assert outcome.doubled == sum(count - 1 for count in times.values())
    assert outcome.altered == len(others)
    assert outcome.is_well is (sorted(numbers) == [0, 1, 2, 3, 4] and not others)


@pytest.mark.parametrize(
    "text",
    [
        "ranklog canary 0123456789abcdef line 9 of 5",
        "ranklog canary 0123456789abcdef line 1 of 6",
        "ranklog canary 0123456789abcde0 line 1 of 5",
        "ranklog canary 0123456789abcdef line 01 of 5",
        " ranklog canary 0123456789abcdef line 1 of 5",
    ],
)
def test_a_line_with_other_text_is_altered(text: str) -> None:
    assert outcome_of([], [text]).altered == 1


def test_a_line_is_as_late_as_when_it_was_seen_first() -> None:
    found = Found(ONE)
    first, second = (line(text, 10 * MS) for text in ONE.texts()[:2])
    found.look([first], 30 * MS)
    found.look([first, second], 110 * MS)
    outcome = found.outcome(2, 0.5)
    assert outcome.ms == [20.0, 100.0]
    assert outcome.to_json()["freshness_ms"] == {"p50": 20.0, "p99": 100.0, "max": 100.0}
    assert not found.is_all


def test_a_count_that_knows_of_more_lines_than_a_search_shows_is_a_doubled_line() -> None:
    found = Found(ONE)
    found.look([line(text) for text in ONE.texts()], 1)
    assert found.outcome(7, 0.0).doubled == 2
    assert found.outcome(5, 0.0).is_well


def test_measures_count_what_is_not_well() -> None:
    counts = outcome_of([0, 0, 1], ["x"]).measures().counts
    assert (counts[names.CANARY_LINES], counts[names.CANARY_MISSING]) == (5, 3)
    assert counts[names.CANARY_DOUBLED] == 2
