"""The same question of the same indexes has the same answer, read once; anything new is read."""

from __future__ import annotations

from typing import Any

import pytest

from ranklog.client import Client
from ranklog.client.answer import Answer
from ranklog.client.results import NOTE, Results
from ranklog.model.answer import Completeness, Report
from ranklog.store.memory import MemoryStore
from tests.client.test_search import put
from tests.ingest.frames import T0, Row, stream

SECOND = 1_000_000_000


class Counting(MemoryStore):
    """Counts what is read of segments."""

    reads = 0

    def get_range(self, *args: Any, **given: Any) -> bytes:
        self.reads += 1
        return super().get_range(*args, **given)


@pytest.fixture
def store() -> Counting:
    made = Counting()
    rows = [Row(f"step {i}", ts=T0 + i * SECOND, metadata={"loss": i}) for i in range(9)]
    put(made, "1", rows)
    return made


@pytest.fixture
def client(store: Counting) -> Client:
    return Client(store=store, tenant="acme", results_bytes=1 << 20)


QUESTIONS: list[dict[str, Any]] = [
    {},
    {"limit": 2},
    {"limit": 2, "order": "oldest"},
    {"context": 1, "query": "/p 5/"},
    {"rank": "3"},
    {"since": "2026-03-01T00:00:04"},
    {"last": "3s"},
]


@pytest.mark.parametrize("question", QUESTIONS, ids=map(str, QUESTIONS))
def test_the_second_answer_is_the_first_and_reads_no_segment(
    question: dict[str, Any], client: Client, store: Counting
) -> None:
    question = {"query": "/s.ep/", "run": "llama", **question}
    first = client.search(**question)
    store.reads = 0
    second = client.search(**question)
    assert (second.lines, second.next) == (first.lines, first.next)
    assert second.completeness == first.completeness
    assert (store.reads, second.report.notes[-1:], first.report.notes) == (0, [NOTE], [])
    plain = Client(store=store, tenant="acme").search(**question)
    assert (plain.lines, plain.next) == (second.lines, second.next)


def test_different_questions_have_their_own_answers(client: Client) -> None:
    for _ in range(2):
        found = [len(client.search("/s.ep/", run="llama", **q).lines) for q in QUESTIONS[:3]]
        assert found == [9, 2, 2]
        assert client.count("/s.ep/", run="llama").count == 9
        assert client.count("/s.ep/", run="llama", by="rank").rows == [((3,), 9)]
    assert client.count("/s.ep/", run="llama").report.notes == [NOTE]


def test_what_is_new_is_read(client: Client, store: Counting) -> None:
    assert client.count("/s.ep/", run="llama").count == 9
    put(store, "2", [Row("step 9", ts=T0 + 9 * SECOND, stream=stream(1))])
    assert client.count("/s.ep/", run="llama").count == 10


def test_an_answer_belongs_to_its_caller(client: Client) -> None:
    first = client.search("/s.ep/", run="llama")
    first.lines[0].text = "changed"
    first.lines[0].metadata["loss"] = -1
    first.lines.clear()
    second = client.search("/s.ep/", run="llama")
    assert (second.lines[0].text, second.lines[0].metadata) == ("step 0", {"loss": 0})


def test_an_answer_with_something_missing_is_asked_again(client: Client, store: Counting) -> None:
    [segment] = [item.key for item in store.list("acme/data/")]
    data = store.get(segment)
    store.put(segment, b"x" * len(data))
    assert client.search("/s.ep/", run="llama").completeness.state == "partial"
    store.put(segment, data)
    assert len(client.search("/s.ep/", run="llama").lines) == 9


def test_a_plan_is_made_each_time(client: Client) -> None:
    client.search("/s.ep/", run="llama")
    assert client.search("/s.ep/", run="llama", explain=True).explain is not None


def test_memory_is_bounded(client: Client) -> None:
    [line] = client.search("/p 5/", run="llama").lines
    results = Results(100_000)
    for number in range(200):
        results.put(number, Answer([], Completeness(), Report()))
    assert results.get(0, Report()) is None
    assert results.get(199, Report()) is not None
    results.put("large", Answer([line] * 100))
    assert results.get("large", Report()) is None
