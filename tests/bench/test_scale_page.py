"""docs/scale-and-cost.md is what the recorded figures say, and the recorded figures are of the command."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.bench.scale.bill import WAYS
from tests.bench.scale.checks import Check
from tests.bench.scale.page import render
from tests.bench.scale.page_mark import size_words
from tests.bench.scale.page_table import number, table
from tests.bench.scale.scenarios import QUERY_RATES, SCENARIOS
from tests.bench.scale.thresholds import WINDOWS_S

ROOT = Path(__file__).parents[2]
RECORDED = Path(__file__).parent / "scale" / "recorded.json"
PAGE = ROOT / "docs" / "scale-and-cost.md"


@pytest.fixture(scope="module")
def found() -> Any:
    return json.loads(RECORDED.read_text())


def test_the_page_is_written_from_the_recorded_figures(found: Any) -> None:
    assert PAGE.read_text() == render(found)


def test_the_recorded_figures_are_of_all_sizes_rates_and_ways(found: Any) -> None:
    assert [one["name"] for one in found["scenarios"]] == [one.name for one in SCENARIOS]
    for scenario in found["scenarios"]:
        assert [int(rate) for rate in scenario["queries"]] == list(QUERY_RATES)
        assert set(scenario["usd_per_tb"]) == set(WAYS)
        assert scenario["pressures"]
    kept = [(one["window_s"], one["way"]) for one in found["thresholds"]]
    assert kept == [(window_s, way) for window_s in WINDOWS_S for way in WAYS]
    assert found["approaches"]
    assert found["checks"] and found["peers"] and found["machine"] and found["date"]


def test_a_recorded_bill_is_the_sum_of_its_lines(found: Any) -> None:
    for scenario in found["scenarios"]:
        for way, items in scenario["bill"].items():
            total = sum(item["usd"] for item in items)
            assert scenario["usd_per_tb"][way] == pytest.approx(total)


def test_a_table_has_as_many_cells_in_every_row(found: Any) -> None:
    columns = None
    for line in render(found).splitlines():
        if not line.startswith("|"):
            columns = None
            continue
        cells = len(re.findall(r"\|", line))
        columns = columns or cells
        assert cells == columns, line


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.01234, "0.0123"), (3.14159, "3.14"), (12.0, "12"), (12.34, "12.3"), (1234.5, "1,234")],
)
def test_numbers_have_three_digits(value: float, shown: str) -> None:
    assert number(value) == shown


@pytest.mark.parametrize(
    ("bytes_per_s", "shown"),
    [
        (None, "at none up to 1 GB/s"),
        (1e9 / 3_600, "at 1 GB/h already"),
        (5e6, "18 GB/h, 0.432 TB/day"),
    ],
)
def test_sizes_are_told_by_hour_and_day(bytes_per_s: float | None, shown: str) -> None:
    assert size_words(bytes_per_s) == shown


def test_what_is_not_there_is_a_dash() -> None:
    assert number(None) == number(float("nan")) == "–"
    assert table(("a", "b"), [("x", None)]) == "| a | b |\n|---|--:|\n| x | – |\n"


@pytest.mark.parametrize(
    ("model", "measured", "ok"), [(1.0, 1.2, True), (1.0, 1.4, False), (1.3, 1.0, False)]
)
def test_a_check_holds_within_a_quarter(model: float, measured: float, ok: bool) -> None:
    assert Check("freshness", model, measured, "s").ok is ok
