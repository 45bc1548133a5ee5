"""The price table: every figure has a page and a day, and sums are what they say."""

from __future__ import annotations

from datetime import date

import pytest

from ranklog.objectives import prices
from ranklog.objectives.prices import Price


@pytest.mark.parametrize("name", sorted(prices.all_prices()))
def test_a_price_names_its_page_and_its_day(name: str) -> None:
    price = prices.all_prices()[name]
    assert price.usd > 0 and price.per
    assert price.source.startswith("https://aws.amazon.com/")
    assert date(2025, 1, 1) < date.fromisoformat(price.as_of)


def test_a_quantity_costs_its_multiple() -> None:
    assert Price(0.5, "GB", "https://aws.amazon.com/", "2026-01-01").of(3) == 1.5


def test_a_hundred_gb_seconds_in_ten_invocations_cost_both_their_time_and_their_number() -> None:
    assert prices.lambda_usd(100, 10) == pytest.approx(100 * 0.0000166667 + 10 * 0.2e-6)
    assert prices.lambda_usd(100, 0, arm=True) == pytest.approx(0.00133334)
