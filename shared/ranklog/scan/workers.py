"""Threads that send tasks and wait: one outcome per task, in order, and no longer than is left.

A task that takes much longer than the others is sent a second time (hedged): the first good outcome
wins. Threads are daemons, so that a call that never answers holds up nobody.
"""

from __future__ import annotations

import queue
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ranklog import limits
from ranklog.errors import Cancelled
from ranklog.plan.tasks import OK, SKIPPED, AnyTask, Outcome, SegmentFailure
from ranklog.scan.stop import Stop

Send = Callable[[AnyTask], Outcome]

# What is interrupted at the end of its time still answers with what it has read, within this.
_GRACE_S = 1.0
_LOOK_S = 0.25
# DuckDB notices an interrupt within milliseconds; one that reads from S3, when the read ends.
_JOIN_S = 10.0


def skipped(task: AnyTask, why: str) -> Outcome:
    """The outcome of a task that was not run."""
    failed = [SegmentFailure(s.number, s.key, why, False, late=True) for s in task.segments]
    return Outcome(SKIPPED, why, failed=failed)


@dataclass(slots=True)
class _Sent:
    """One task on its way. `waiting`: how often it was given to a worker that did not answer yet."""

    started_s: float | None = None
    waiting: int = 1
    hedged: bool = False
    poor: Outcome | None = None  # an outcome with failures, while another is under way
    outcome: Outcome | None = None


@dataclass(slots=True)
class Workers:
    """`ends_s`: when the query's time is over, by time.monotonic(); `hedge`: send stragglers again."""

    tasks: Sequence[AnyTask]
    send: Send
    width: int
    stop: Stop
    ends_s: float | None = None
    hedge: bool = False
    hedges: int = 0
    _sent: list[_Sent] = field(init=False)
    _todo: queue.SimpleQueue[int | None] = field(init=False)
    _done: queue.SimpleQueue[tuple[int, Outcome] | None] = field(init=False)
    _took_s: list[float] = field(init=False)

    def __post_init__(self) -> None:
        self._sent = [_Sent() for _ in self.tasks]
        self._todo, self._done = queue.SimpleQueue(), queue.SimpleQueue()
        self._took_s = []

    def outcomes(self) -> Iterator[Outcome]:
        """One per task, in their order. Raises Cancelled when it is stopped from outside."""
        for number in range(len(self.tasks)):
            self._todo.put(number)
        self.stop.tell(lambda: self._done.put(None))
        names = (f"ranklog-scatter-{at}" for at in range(self.width))
        threads = [threading.Thread(target=self._work, name=n, daemon=True) for n in names]
        for thread in threads:
            thread.start()
        try:
            for sent in self._sent:
                while sent.outcome is None:
                    self._wait()
                yield sent.outcome
        finally:
            for _ in range(self.width):
                self._todo.put(None)
            if any(sent.waiting for sent in self._sent):
                self._end(threads)  # an interrupt, or nobody waits for the rest

    def _end(self, threads: Sequence[threading.Thread]) -> None:
        """Stop what runs. In this process, wait until it has: Python can't end while DuckDB works in
        a thread of it. What runs elsewhere is left alone."""
        ends_s = time.monotonic() + (0.0 if self.hedge else _JOIN_S)
        self.stop.set()
        for thread in threads:
            while thread.is_alive() and time.monotonic() < ends_s:
                thread.join(0.05)
                self.stop.set()  # a statement that had not begun was not interrupted

    # --- in a worker's thread -------------------------------------------------------------------
    def _work(self) -> None:
        with self.stop.applied():
            while (number := self._todo.get()) is not None and not self.stop.is_set:
                sent, task = self._sent[number], self.tasks[number]
                if self.ends_s is not None and time.monotonic() >= self.ends_s:
                    self._done.put((number, skipped(task, "not reached in time")))
                    continue
                sent.started_s = sent.started_s or time.monotonic()
                self._done.put((number, self.send(task)))

    # --- in the thread of the query -------------------------------------------------------------
    def _wait(self) -> None:
        """Take the next outcome; past the end, do without those that are missing."""
        try:
            found = self._done.get(timeout=self._patience_s())
        except queue.Empty:
            if self._over():
                for sent, task in zip(self._sent, self.tasks, strict=True):
                    sent.outcome = sent.outcome or sent.poor or skipped(task, "not done in time")
            elif self.hedge:
                self._hedge()
            return
        if self.stop.is_set:
            raise Cancelled("the query was cancelled")
        if found is not None:
            self._take(*found)

    def _patience_s(self) -> float | None:
        if self.ends_s is None:
            return _LOOK_S if self.hedge else None
        left = max(0.0, self.ends_s + _GRACE_S - time.monotonic())
        return min(left, _LOOK_S) if self.hedge else left

    def _over(self) -> bool:
        return self.ends_s is not None and time.monotonic() >= self.ends_s + _GRACE_S

    def _take(self, number: int, outcome: Outcome) -> None:
        sent = self._sent[number]
        sent.waiting -= 1
        if sent.outcome is not None:
            return  # the other one was faster
        if outcome.tag == OK or not sent.waiting:
            sent.outcome = outcome
            if sent.started_s is not None:
                self._took_s.append(time.monotonic() - sent.started_s)
        else:
            sent.poor = outcome

    def _hedge(self) -> None:
        """Once most tasks have answered, send again what takes far longer than they did."""
        if len(self._took_s) < max(2, len(self.tasks) // 2) or not self._todo.empty():
            return
        usual_s = statistics.median(self._took_s)
        late_s = max(limits.HEDGE_AFTER_S_MIN, limits.HEDGE_AFTER_MEDIANS * usual_s)
        now_s = time.monotonic()
        for number, sent in enumerate(self._sent):
            if self.hedges >= max(1, len(self.tasks) // limits.HEDGE_ONE_OF):
                return
            started_s = sent.started_s
            if sent.outcome is not None or sent.hedged or started_s is None:
                continue
            if now_s - started_s > late_s:
                sent.hedged = True
                sent.waiting += 1
                self.hedges += 1
                self._todo.put(number)
