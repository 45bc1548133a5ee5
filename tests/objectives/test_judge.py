"""Objectives: a quantile is within its target exactly while the error budget lasts."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranklog.objectives import names
from ranklog.objectives.judge import (
    Stored,
    Verdict,
    allowed_of,
    any_measured,
    any_missed,
    judge,
)
from ranklog.objectives.measures import Measures
from ranklog.objectives.targets import OBJECTIVES, defaults

SHARE_NAMES = [one.name for one in OBJECTIVES if one.times is None]


def verdicts(
    measures: Measures | None = None, stored: Stored | None = None, **targets: float | None
) -> dict[str, Verdict]:
    judged = judge(measures or Measures(), stored or Stored(), defaults() | targets)
    return {verdict.name: verdict for verdict in judged}


@given(
    st.lists(st.tuples(st.floats(0, 1e6), st.integers(1, 50)), min_size=1, max_size=60),
    st.floats(1, 1e6),
)
def test_a_quantile_is_within_its_target_exactly_where_the_budget_is_not_overspent(
    values: list[tuple[float, int]], target: float
) -> None:
    measures = Measures()
    for ms, count in values:
        measures.took(names.QUERY_MS, ms, count)
    for name in ("query_p50_ms", "query_p95_ms", "query_p99_ms"):
        found = verdicts(measures, **{name: target})[name]
        assert found.value is not None
        assert found.met is (found.value <= target)


@given(st.integers(1, 10**9), st.fractions(0, 1))
def test_the_budget_is_the_most_that_keeps_the_share(count: int, share: Fraction) -> None:
    allowed = allowed_of(share, count)
    assert Fraction(count - allowed, count) >= share
    assert Fraction(count - allowed - 1, count) < share


@given(st.integers(0, 100), st.integers(0, 100))
def test_what_is_left_of_a_budget_falls_with_each_bad_one(complete: int, partial: int) -> None:
    measures = Measures()
    measures.count(names.ANSWERS["complete"], complete)
    measures.count(names.ANSWERS["partial"], partial)
    found = verdicts(measures, answers_whole=0.9)["answers_whole"]
    of = complete + partial
    assert (found.of, found.bad, found.allowed) == (of, partial, of // 10)
    assert found.met is (None if not of else partial <= of // 10)
    if of // 10:
        assert found.left == pytest.approx(1 - partial / (of // 10))


def test_half_of_a_budget_is_spent_by_half_of_what_it_allows() -> None:
    measures = Measures()
    measures.took(names.FRESHNESS, 900, 995)
    measures.took(names.FRESHNESS, 60_000, 5)
    found = verdicts(measures)["freshness_p99_ms"]
    assert (found.met, found.of, found.bad, found.allowed, found.left) == (True, 1000, 5, 10, 0.5)


def test_durability_has_no_budget_so_that_one_lost_line_misses_it() -> None:
    found = verdicts(stored=Stored(lines=10**9, missing=1, lost=1))
    assert found["durability"].met is False
    assert found["durability"].left is None
    assert found["durability"].value == pytest.approx(1.0)
    assert found["completeness"].met is True


def test_a_share_written_as_a_decimal_allows_what_the_decimal_says() -> None:
    # 1 - 0.9999 in binary is a little less than 0.0001
    found = verdicts(stored=Stored(lines=9_999, missing=1))["completeness"]
    assert (found.of, found.allowed, found.met, found.left) == (10_000, 1, True, 0.0)


def test_what_was_deleted_is_neither_missing_nor_lost() -> None:
    found = verdicts(stored=Stored(lines=1, deleted=9))
    assert found["completeness"].value == found["durability"].value == 1.0


def test_nothing_measured_is_neither_met_nor_missed() -> None:
    found = list(verdicts().values())
    assert [verdict.met for verdict in found] == [None] * len(OBJECTIVES)
    assert not any_measured(found) and not any_missed(found)


@pytest.mark.parametrize("name", SHARE_NAMES)
def test_without_a_target_a_share_is_told_and_not_judged(name: str) -> None:
    measures = Measures()
    for counted in (names.QUERIES, names.ANSWERS["behind"], names.CANARY_LINES):
        measures.count(counted, 4)
    found = verdicts(measures, Stored(lines=4), **{name: None})[name]
    assert (found.of, found.met, found.left) == (4, None, None)
    assert found.value is not None
