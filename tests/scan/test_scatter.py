"""One outcome per task: retried while that may help, reported when it does not."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from ranklog import limits
from ranklog.errors import Unavailable
from ranklog.model import query as q
from ranklog.plan.tasks import (
    FAILED,
    OK,
    AnyTask,
    Groups,
    Outcome,
    SegmentFailure,
    SegmentScan,
    Task,
    decode_task,
    encode_outcome,
)
from ranklog.scan import scatter as scatter_module
from ranklog.scan.scatter import InProcess, run_task, scatter
from ranklog.store.disk import DiskStore
from ranklog.store.memory import MemoryStore
from ranklog.store.protocol import Store


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scatter_module, "_BACKOFF_S", 0.0)


def task(*numbers: int) -> Task:
    segments = [SegmentScan(n, f"k{n}", 1, "", 1, 0, 0) for n in numbers]
    return Task(q.Everything(), tuple(segments), Groups())


class Scripted:
    """Answers with the next of its outcomes; remembers what it was asked."""

    def __init__(self, *answers: Outcome | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[list[int]] = []

    def invoke(self, task: bytes) -> bytes:
        self.asked.append([segment.number for segment in decode_task(task).segments])
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return encode_outcome(answer)


def failed(number: int, *, retryable: bool) -> Outcome:
    why = SegmentFailure(number, f"k{number}", "slow down", retryable)
    return Outcome(FAILED, "slow down", retryable, {"count": [1]}, [why])


def test_only_the_segments_that_failed_for_now_are_asked_again() -> None:
    invoker = Scripted(failed(2, retryable=True), Outcome(columns={"count": [5]}))
    outcome = run_task(task(1, 2), invoker, MemoryStore())
    assert invoker.asked == [[1, 2], [2]]
    assert (outcome.tag, outcome.columns, outcome.failed) == (OK, {"count": [1, 5]}, [])


def test_what_will_not_pass_is_not_asked_again() -> None:
    invoker = Scripted(failed(2, retryable=False))
    outcome = run_task(task(1, 2), invoker, MemoryStore())
    assert (len(invoker.asked), outcome.tag) == (1, FAILED)


def test_after_the_last_retry_the_failure_is_an_outcome() -> None:
    invoker = Scripted(*[Unavailable("no answer")] * (1 + limits.SCAN_RETRIES_MAX))
    outcome = run_task(task(1, 2), invoker, MemoryStore())
    assert len(invoker.asked) == 1 + limits.SCAN_RETRIES_MAX
    assert [failure.key for failure in outcome.failed] == ["k1", "k2"]


def test_a_worker_that_breaks_is_an_outcome() -> None:
    outcome = run_task(task(1), Scripted(ZeroDivisionError("oops")), MemoryStore())
    assert (outcome.tag, outcome.reason) == (FAILED, "ZeroDivisionError: oops")


def test_a_stored_outcome_is_fetched_and_removed() -> None:
    store = MemoryStore()
    store.put("acme/tmp/1", encode_outcome(Outcome(columns={"count": [3]})))
    outcome = run_task(task(1), Scripted(Outcome(stored="acme/tmp/1")), store)
    assert outcome.columns == {"count": [3]}
    assert list(store.list("acme/tmp/")) == []


class AsAFunction:
    """In this process, but through bytes."""

    def __init__(self, inner: InProcess) -> None:
        self._inner = inner

    def invoke(self, data: bytes) -> bytes:
        return self._inner.invoke(data)


def test_only_what_travels_has_a_payload_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PAYLOAD_BYTES_MAX", 10)
    here = InProcess(MemoryStore())
    there = run_task(task(1), AsAFunction(here), MemoryStore())
    assert there.tag == FAILED
    assert "payload limit" in there.failed[0].reason
    assert "payload limit" not in run_task(task(1), here, MemoryStore()).failed[0].reason


def test_fan_out_is_bounded_and_outcomes_keep_their_order() -> None:
    running, most, lock = 0, 0, threading.Lock()
    gate = threading.Event()

    class Counting:
        def invoke(self, data: bytes) -> bytes:
            nonlocal running, most
            with lock:
                running += 1
                most = max(most, running)
            gate.wait(0.02)
            with lock:
                running -= 1
            number = decode_task(data).segments[0].number
            return encode_outcome(Outcome(columns={"count": [number]}))

    tasks = [task(n) for n in range(12)]
    found = list(scatter(tasks, Counting(), MemoryStore(), concurrency=3))
    assert [outcome.columns["count"] for outcome in found] == [[n] for n in range(12)]
    assert most <= 3


class Watched(InProcess):
    """Answers at once, and remembers the threads."""

    threads: set[int]

    def evaluate(self, task: AnyTask) -> Outcome:
        self.threads.add(threading.get_ident())
        return Outcome(columns={"count": [1]})


@pytest.mark.parametrize(
    ("local", "rows", "here"),
    [(True, 10, True), (True, scatter_module._QUICK_ROWS_MAX, False), (False, 10, False)],
)
def test_few_rows_of_files_are_looked_at_by_the_thread_that_asks(
    tmp_path: Path, local: bool, rows: int, here: bool
) -> None:
    store: Store = DiskStore(tmp_path / "store") if local else MemoryStore()
    invoker = Watched(store)
    object.__setattr__(invoker, "threads", set())
    scans = [replace(task(n).segments[0], rows=((0, rows),)) for n in range(4)]
    tasks = [Task(q.Everything(), (scan,), Groups()) for scan in scans]
    assert len(list(scatter(tasks, invoker, store, concurrency=2))) == len(tasks)
    assert (invoker.threads == {threading.get_ident()}) is here
