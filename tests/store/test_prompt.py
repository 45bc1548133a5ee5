"""A store that does not answer is told of soon, and is not asked again at once."""

from __future__ import annotations

import threading

import pytest

from ranklog import limits
from ranklog.errors import NotFound, Unavailable
from ranklog.store.memory import MemoryStore
from ranklog.store.prompt import Prompt

WAIT_S = 60.0


class Away(MemoryStore):
    """Answers no GET until it is back."""

    def __init__(self) -> None:
        super().__init__()
        self.back = threading.Event()
        self.gets = 0

    def get(self, key: str) -> bytes:
        self.gets += 1
        self.back.wait(WAIT_S)
        return super().get(key)


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "STORE_PROMPT_S_MAX", 0.1)


def test_what_answers_is_a_store_like_any() -> None:
    store = Prompt(MemoryStore())
    store.put("a/b", b"12345")
    assert (store.get("a/b"), store.get_range("a/b", 1, 2)) == (b"12345", b"23")
    assert [info.key for info in store.list("a/")] == ["a/b"]
    assert list(store.list_folders("")) == ["a/"]
    store.delete("a/b")
    with pytest.raises(NotFound):
        store.get("a/b")


def test_after_a_call_without_answer_others_are_refused_for_a_moment() -> None:
    now_s = [0.0]
    inner = Away()
    inner.put("a", b"1")
    store = Prompt(inner, clock_s=lambda: now_s[0])
    with pytest.raises(Unavailable, match=r"does not answer within 0\.1 s"):
        store.get("a")
    with pytest.raises(Unavailable, match="does not answer"):
        list(store.list("a"))
    assert inner.gets == 1
    inner.back.set()
    now_s[0] = limits.STORE_AWAY_S
    assert store.get("a") == b"1"


def test_calls_that_hang_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "STORE_PROMPT_CALLS_MAX", 2)
    monkeypatch.setattr(limits, "STORE_AWAY_S", 0.0)
    inner = Away()
    store = Prompt(inner)
    for _ in range(4):
        with pytest.raises(Unavailable):
            store.get("a")
    assert inner.gets == 2
    inner.back.set()
