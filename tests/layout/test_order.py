"""Rows stand by template, rare templates in a row group of their own at the end."""

from __future__ import annotations

from typing import Any

import pytest

from ranklog.layout import order
from ranklog.layout.index import SegmentIndex
from ranklog.store.memory import MemoryStore
from tests.ingest.frames import Row, make_frame
from tests.ingest.test_batch import indexes, ingest, table


def stored(texts: list[str]) -> tuple[SegmentIndex, list[dict[str, Any]]]:
    store = MemoryStore()
    ingest(store, make_frame([Row(text) for text in texts]))
    (index,) = indexes(store)
    return index, table(store, index)


@pytest.fixture(autouse=True)
def small_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order, "ROW_GROUP_ROWS", 4)
    monkeypatch.setattr(order, "RARE_ROWS_MAX", 3)


def test_the_rarest_templates_have_the_last_row_group() -> None:
    index, rows = stored(["often b"] * 4 + ["a once"] + ["often c"] * 5 + ["twice z"] * 2)
    assert [group.rows for group in index.head.row_groups] == [4, 4, 1, 3]
    assert [row["text"] for row in rows] == [
        *["often b"] * 4,
        *["often c"] * 5,
        *["a once", "twice z", "twice z"],
    ]


def test_one_row_group_stays_one() -> None:
    index, rows = stored(["b", "b", "b", "a"])
    assert [group.rows for group in index.head.row_groups] == [4]
    assert [row["text"] for row in rows] == ["a", "b", "b", "b"]


def test_templates_of_which_each_is_frequent_have_no_such_row_group() -> None:
    index, _ = stored(["b"] * 4 + ["a"] * 4)
    assert [group.rows for group in index.head.row_groups] == [4, 4]
