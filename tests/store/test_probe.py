"""A store that ignores conditions is refused before anything is kept in it."""

from __future__ import annotations

import pytest

from ranklog.errors import BadInput
from ranklog.store.memory import MemoryStore
from ranklog.store.probe import check_create_once


class Careless(MemoryStore):
    """Takes every PUT."""

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> str:
        return super().put(key, data)


def test_a_store_with_one_winner_passes_and_keeps_nothing_of_it() -> None:
    store = MemoryStore()
    check_create_once(store)
    assert list(store.list("")) == []


def test_a_store_that_ignores_the_condition_is_refused() -> None:
    store = Careless()
    with pytest.raises(BadInput, match="If-None-Match"):
        check_create_once(store)
    assert list(store.list("")) == []
