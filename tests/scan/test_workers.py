"""Scatter under a deadline, with stragglers, and when nobody waits for it any more."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ranklog import limits
from ranklog.errors import Cancelled
from ranklog.model import query as q
from ranklog.plan.tasks import (
    FAILED,
    OK,
    SKIPPED,
    Groups,
    Outcome,
    SegmentFailure,
    SegmentScan,
    Task,
    decode_outcome,
    decode_task,
    encode_outcome,
)
from ranklog.scan import workers as workers_module
from ranklog.scan.engine import Engine
from ranklog.scan.scatter import scatter
from ranklog.scan.stop import Stop
from ranklog.store.memory import MemoryStore

ROOT = Path(__file__).parents[2]


def task(number: int) -> Task:
    return Task(q.Everything(), (SegmentScan(number, f"k{number}", 1, "", 1, 0, 0),), Groups())


class Scripted:
    """Calls its function with the task's number and how often it came before."""

    def __init__(self, answer: Callable[[int, int], Outcome | None]) -> None:
        self._answer = answer
        self._lock = threading.Lock()
        self.asked: list[int] = []

    def invoke(self, data: bytes) -> bytes:
        number = decode_task(data).segments[0].number
        with self._lock:
            before = self.asked.count(number)
            self.asked.append(number)
        found = self._answer(number, before)
        return encode_outcome(found or Outcome(columns={"count": [number]}))


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers_module, "_GRACE_S", 0.05)
    monkeypatch.setattr(workers_module, "_LOOK_S", 0.01)
    monkeypatch.setattr(limits, "HEDGE_AFTER_S_MIN", 0.05)


def test_at_the_end_of_its_time_a_query_goes_on_without_what_is_missing() -> None:
    gate = threading.Event()
    invoker = Scripted(lambda number, _: gate.wait(30) and None if number else None)
    ends_s = time.monotonic() + 0.1
    found = list(
        scatter([task(0), task(1), task(2)], invoker, MemoryStore(), concurrency=2, ends_s=ends_s)
    )
    gate.set()
    assert [outcome.tag for outcome in found] == [OK, SKIPPED, SKIPPED]
    assert [failure.late for outcome in found[1:] for failure in outcome.failed] == [True, True]
    assert [outcome.failed[0].key for outcome in found[1:]] == ["k1", "k2"]


def test_a_task_that_begins_too_late_is_not_sent() -> None:
    invoker = Scripted(lambda *_: None)
    [outcome] = scatter([task(0)], invoker, MemoryStore(), ends_s=time.monotonic() - 1)
    assert (outcome.tag, outcome.reason, invoker.asked) == (SKIPPED, "not reached in time", [])


def test_a_task_knows_how_long_it_has() -> None:
    seen: list[float | None] = []

    class Seeing:
        def invoke(self, data: bytes) -> bytes:
            seen.append(decode_task(data).deadline_s)
            return encode_outcome(Outcome())

    ends_s = time.monotonic() + 7
    list(scatter([task(0)], Seeing(), MemoryStore(), deadline_s=lambda: 90, ends_s=ends_s))
    assert seen[0] is not None and 6 < seen[0] <= 7


def test_a_straggler_is_sent_again_and_the_first_good_outcome_wins() -> None:
    gate = threading.Event()

    def answer(number: int, before: int) -> Outcome | None:
        if number == 3 and not before:
            gate.wait(30)
            return Outcome(columns={"count": [-1]})
        return None

    invoker = Scripted(answer)
    found = list(scatter([task(n) for n in range(8)], invoker, MemoryStore(), concurrency=8))
    gate.set()
    assert [outcome.columns["count"] for outcome in found] == [[n] for n in range(8)]
    assert invoker.asked.count(3) == 2
    assert len(invoker.asked) == 9


def test_hedging_is_bounded() -> None:
    gate = threading.Event()
    slow = {4, 5, 6, 7}
    invoker = Scripted(lambda number, before: gate.wait(1) and None if number in slow else None)
    list(scatter([task(n) for n in range(8)], invoker, MemoryStore(), concurrency=8))
    gate.set()
    assert len(invoker.asked) == 9


def test_a_failed_outcome_waits_for_its_hedge() -> None:
    released = threading.Event()

    def answer(number: int, before: int) -> Outcome | None:
        if number == 1 and not before:
            released.wait(30)
            return Outcome(FAILED, "broke", failed=[SegmentFailure(1, "k1", "broke")])
        if number == 1:
            released.set()
            time.sleep(0.2)
        return None

    found = list(
        scatter([task(n) for n in range(4)], Scripted(answer), MemoryStore(), concurrency=4)
    )
    assert [outcome.tag for outcome in found] == [OK] * 4


def test_a_stop_from_outside_cancels() -> None:
    stop, gate = Stop(), threading.Event()
    invoker = Scripted(lambda *_: gate.wait(30) and None)
    threading.Timer(0.05, stop.set).start()
    with pytest.raises(Cancelled):
        list(scatter([task(0), task(1)], invoker, MemoryStore(), stop=stop))
    gate.set()


def test_what_nobody_reads_is_stopped() -> None:
    stop = Stop()
    gate = threading.Event()
    invoker = Scripted(lambda number, _: gate.wait(30) and None if number else None)
    outcomes = scatter([task(0), task(1)], invoker, MemoryStore(), concurrency=2, stop=stop)
    assert next(outcomes).tag == OK
    outcomes.close()  # type: ignore[attr-defined]
    gate.set()
    assert stop.is_set


def test_a_stop_interrupts_duckdb() -> None:
    engine, stop = Engine(threads=1), Stop()
    caught: list[str] = []

    def work() -> None:
        with stop.applied():
            for _ in range(2):  # the second one does not even begin
                try:
                    with engine.cursor() as cursor:
                        cursor.execute(
                            "SELECT count(*) FROM range(100_000_000_000) t(x) WHERE x % 7 = 3"
                        )
                except Exception as error:
                    caught.append(type(error).__name__)

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.3)
    stop.set()
    thread.join(20)
    assert caught == ["InterruptException", "InterruptException"]


def test_a_ctrl_c_while_duckdb_works_is_a_ctrl_c() -> None:
    code = """
import os, signal, threading
from ranklog.scan.engine import Engine
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    with Engine(threads=1).cursor() as cursor:
        cursor.execute("SELECT count(*) FROM range(100_000_000_000) t(x) WHERE x % 7 = 3")
except KeyboardInterrupt:
    print("interrupted")
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "shared")}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=environment
    )
    assert done.stdout == "interrupted\n"


def test_a_ctrl_c_while_threads_work_ends_the_process_cleanly() -> None:
    code = """
import os, signal, sys, threading
from ranklog.scan.engine import Engine
from ranklog.scan.stop import Stop
from ranklog.scan.workers import Workers
from ranklog.plan.tasks import Outcome
engine = Engine(threads=1)
def send(task):
    try:
        with engine.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM range(100_000_000_000) t(x) WHERE x % 7 = 3")
    except Exception:
        return Outcome()
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    list(Workers([None] * 6, send, 3, Stop()).outcomes())
except KeyboardInterrupt:
    sys.exit(130)
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "shared")}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=environment
    )
    assert (done.returncode, done.stderr) == (130, "")


def test_lateness_travels() -> None:
    outcome = Outcome(FAILED, "x", failed=[SegmentFailure(1, "k", "x", False, late=True)])
    assert decode_outcome(encode_outcome(outcome)) == outcome
