"""The same question asked at the same time is worked out once; errors and short answers are not shared."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from ranklog.client import Client, reader
from ranklog.client.answer import Answer
from ranklog.client.flights import NOTE, Flights
from ranklog.errors import Unavailable
from ranklog.model.answer import Completeness, Report
from ranklog.store.memory import MemoryStore
from tests.client.test_search import put
from tests.ingest.frames import T0, Row

WAIT_S = 20


class Asking:
    """Threads that ask for one place; the work of the first waits until `most` others wait for it."""

    def __init__(self, most: int, work: Callable[[int], Answer]) -> None:
        self.flights, self.calls, self._work = Flights(), 0, work
        self._most, self._begun = most, threading.Event()
        self.found: list[Any] = [None] * (most + 1)

    def run(self) -> list[Any]:
        first = threading.Thread(target=self._ask, args=(0,))
        first.start()
        assert self._begun.wait(WAIT_S)
        others = [threading.Thread(target=self._ask, args=(n + 1,)) for n in range(self._most)]
        for thread in others:
            thread.start()
        for thread in [first, *others]:
            thread.join(WAIT_S)
        return self.found

    def _ask(self, n: int) -> None:
        try:
            self.found[n] = self.flights.join("place", Report(bytes_read=n), self._answer)
        except Unavailable as error:
            self.found[n] = error

    def _answer(self) -> Answer:
        self.calls += 1
        number = self.calls
        if number == 1:
            self._begun.set()
            [flight] = self.flights._open.values()
            while flight.waiting < self._most:
                threading.Event().wait(0.001)
        return self._work(number)


def test_who_asks_meanwhile_has_a_copy_of_the_one_answer() -> None:
    asking = Asking(3, lambda number: Answer(report=Report(segments_scanned=number)))
    first, *others = asking.run()
    assert asking.calls == 1
    assert first.report.notes == []
    assert [one.report.notes for one in others] == [[NOTE]] * 3
    assert [one.report.bytes_read for one in others] == [1, 2, 3]
    assert len({id(one.lines) for one in (first, *others)}) == 4


def test_a_short_answer_is_not_shared() -> None:
    short = Completeness(skipped_tasks=[{"segment": "s", "reason": "r"}])
    asking = Asking(2, lambda number: Answer(completeness=short))
    asking.run()
    assert asking.calls > 1


def test_an_error_is_not_shared() -> None:
    def work(number: int) -> Answer:
        if number == 1:
            raise Unavailable("the store does not answer")
        return Answer()

    first, second = Asking(1, work).run()
    assert isinstance(first, Unavailable) and second == Answer()


def test_who_comes_later_asks_again() -> None:
    flights, calls = Flights(), []
    for _ in range(2):
        flights.join("place", Report(), lambda: calls.append(1) or Answer())
    assert calls == [1, 1]


@pytest.mark.parametrize("timeout_s", [None, 60.0])
def test_many_who_ask_at_once_have_the_same_answer(timeout_s: float | None) -> None:
    store = MemoryStore()
    put(store, "1", [Row(f"step {i}", ts=T0 + i) for i in range(50)])
    client = Client(store=store, tenant="acme")
    expected = client.search("step", run="llama").lines
    found: list[Any] = [None] * 12

    def ask(n: int) -> None:
        found[n] = client.search("step", run="llama", timeout_s=timeout_s).lines

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(len(found))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    assert found == [expected] * len(found)


def test_more_questions_than_have_a_turn_are_answered_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_turn", threading.Semaphore(1))
    store = MemoryStore()
    put(store, "1", [Row(f"step {i}", ts=T0 + i) for i in range(50)])
    client = Client(store=store, tenant="acme")
    found: dict[int, int] = {}

    def ask(n: int) -> None:
        query = f'near("step {n}", time, 2ns) step'
        found[n] = len(client.search(query, run="llama").lines) + client.count("step").count

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(10, 20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    assert found == dict.fromkeys(range(10, 20), 5 + 50)


def test_who_has_no_time_left_does_not_wait_for_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_turn", threading.Semaphore(0))
    store = MemoryStore()
    put(store, "1", [Row("step 1")])
    answer = Client(store=store, tenant="acme").search("step", run="llama", timeout_s=0.05)
    assert answer.completeness.state == "partial"
