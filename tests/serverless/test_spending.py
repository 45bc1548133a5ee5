"""What work costs: every request to the store is counted, and time by memory."""

from __future__ import annotations

import pytest

from ranklog.objectives import prices
from ranklog.serverless.spending import CountedStore, Spending, Spent
from ranklog.store import MemoryStore


def test_requests_are_counted_and_pass_through() -> None:
    spending = Spending()
    store = CountedStore(MemoryStore(), spending)
    store.put("a/1", b"abc")
    store.put("a/2", b"", if_absent=True)
    assert (store.get("a/1"), store.get_range("a/1", 1, 2)) == (b"abc", b"bc")
    assert [info.key for info in store.list("a/")] == ["a/1", "a/2"]
    assert list(store.list_folders("")) == ["a/"]
    store.delete("a/1")
    spent = spending.so_far()
    assert (spent.gets, spent.puts, spent.lists, spent.invocations) == (2, 2, 2, 1)


@pytest.mark.parametrize(("keys", "lists"), [(0, 1), (1, 1), (1_000, 1), (1_001, 2), (2_500, 3)])
def test_a_list_is_a_request_per_thousand_keys(keys: int, lists: int) -> None:
    spending = Spending()
    store = CountedStore(MemoryStore(), spending)
    for number in range(keys):
        store.put(f"k/{number}", b"")
    spending.begin()
    assert len(list(store.list("k/"))) == keys
    assert spending.so_far().lists == lists


def test_time_costs_by_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "2048")
    spending = Spending()
    first, second = spending.so_far().gb_s, spending.so_far().gb_s
    assert 0 <= first <= second
    spending.begin()
    assert spending.so_far().gb_s < second + 1


def test_a_bill_is_the_sum_of_its_lines_and_arm_is_cheaper() -> None:
    spent = Spent(gets=10, puts=2, lists=3, gb_s=1.5, invocations=4)
    usd = 10 * 0.4e-6 + 5 * 5e-6 + 1.5 * 0.0000166667 + 4 * 0.2e-6
    assert spent.nanousd(arm=False) == round(usd * 1e9)
    saved = 1.5 * (prices.LAMBDA_X86_GB_S.usd - prices.LAMBDA_ARM_GB_S.usd)
    assert spent.nanousd(arm=True) == round((usd - saved) * 1e9)


def test_what_another_function_says_is_taken_as_far_as_it_is_numbers() -> None:
    said = Spent(gets=3, gb_s=0.5, invocations=1).to_json()
    assert Spent.from_json(said) == Spent(gets=3, gb_s=0.5, invocations=1)
    assert Spent.from_json({"gets": "many", "else": 1}) == Spent()
