"""Send tasks out and gather their outcomes: bounded, retried, one outcome for each task.

The port has one method, which Lambda serves on AWS. In this process nothing travels: threads evaluate
the very task, and what they return is the very outcome.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from ranklog import limits
from ranklog.errors import Cancelled, RanklogError, TooLarge
from ranklog.plan.tasks import (
    FAILED,
    OK,
    AnyTask,
    Outcome,
    PointTask,
    SegmentFailure,
    SegmentScan,
    decode_outcome,
    encode_task,
)
from ranklog.scan.stop import Stop
from ranklog.scan.workers import Workers
from ranklog.store.protocol import Store

if TYPE_CHECKING:
    from ranklog.scan.engine import Engine

_BACKOFF_S = 0.1
# So many rows that might match are looked at by the thread that asks.
_QUICK_ROWS_MAX = 65_536
# What a row takes in a segment, on the safe side.
_ROW_BYTES = 16


class Invoker(Protocol):
    """Where tasks run."""

    def invoke(self, task: bytes) -> bytes:
        """Evaluate a task. Raises RanklogError when no outcome came back."""
        ...


@dataclass(frozen=True, slots=True)
class InProcess:
    """Evaluates in the calling thread. DuckDB is imported here: who scatters may have none."""

    store: Store
    engine: Engine | None = None

    def evaluate(self, task: AnyTask) -> Outcome:
        """The task's outcome, whatever its size."""
        from ranklog.scan.engine import shared_engine
        from ranklog.scan.evaluate import evaluate_task
        from ranklog.scan.points import evaluate_points

        engine = self.engine or shared_engine()
        if isinstance(task, PointTask):
            return evaluate_points(task, self.store, engine)
        return evaluate_task(task, self.store, engine)

    def invoke(self, task: bytes) -> bytes:
        """As a function would, under the limits that Lambda sets."""
        from ranklog.scan.evaluate import evaluate

        _check_size("task", task)
        outcome = evaluate(task, self.store, self.engine)
        _check_size("outcome", outcome)
        return outcome


def _check_size(what: str, data: bytes) -> None:
    if len(data) > limits.PAYLOAD_BYTES_MAX:
        raise TooLarge(
            f"{what} of {len(data)} bytes is over the payload limit of {limits.PAYLOAD_BYTES_MAX}"
        )


def scatter(
    tasks: Sequence[AnyTask],
    invoker: Invoker,
    store: Store,
    *,
    concurrency: int = limits.SCATTER_CONCURRENCY_MAX,
    spill_key: Callable[[str], str] | None = None,
    deadline_s: Callable[[], float] | None = None,
    ends_s: float | None = None,
    stop: Stop | None = None,
) -> Iterator[Outcome]:
    """One outcome per task, in the order of the tasks; never an exception for a task.

    `spill_key` names where an outcome goes that is too large; `deadline_s` says, when a task is sent,
    how long it may take. Tasks that did not answer at `ends_s` (by time.monotonic()) are skipped.
    Raises Cancelled when `stop` is set.
    """

    def send(task: AnyTask) -> Outcome:
        return run_task(task, invoker, store, spill_key, _time_left(deadline_s, ends_s))

    remote = not isinstance(invoker, InProcess)
    width = max(1, min(concurrency, limits.SCATTER_CONCURRENCY_MAX, len(tasks)))
    stop = stop or Stop()
    if not remote and (width == 1 or _are_quick(tasks, store)):
        with stop.applied():
            for task in tasks:
                outcome = send(task)
                if stop.is_set:
                    raise Cancelled("the query was cancelled")
                yield outcome
        return
    yield from Workers(tasks, send, width, stop, ends_s, hedge=remote).outcomes()


def _are_quick(tasks: Sequence[AnyTask], store: Store) -> bool:
    """Whether threads would cost more than they save: files are at hand, and of so few rows most of the
    work is Python, which they would only take turns at."""
    scans = [scan for task in tasks for scan in task.segments]
    if not scans or sum(map(_rows_about, scans)) > _QUICK_ROWS_MAX:
        return False
    return store.local_path(scans[0].key) is not None


def _rows_about(scan: SegmentScan) -> int:
    if scan.rows is None:
        return scan.length // _ROW_BYTES
    return sum(end - start for start, end in scan.rows)


def _time_left(
    deadline_s: Callable[[], float] | None, ends_s: float | None
) -> Callable[[], float] | None:
    """What a task may take at most: its own time, and what is left of the query's."""
    if ends_s is None:
        return deadline_s
    own_s = deadline_s or (lambda: limits.TASK_SECONDS_MAX)
    return lambda: min(own_s(), ends_s - time.monotonic())


def run_task(
    task: AnyTask,
    invoker: Invoker,
    store: Store,
    spill_key: Callable[[str], str] | None = None,
    deadline_s: Callable[[], float] | None = None,
) -> Outcome:
    """Invoke once, and again for the segments whose failure may pass."""
    outcome = _invoke(task, invoker, store, spill_key, deadline_s)
    for attempt in range(limits.SCAN_RETRIES_MAX):
        again = {failure.number for failure in outcome.failed if failure.retryable}
        pause_s = _BACKOFF_S * 2**attempt
        if not again or (deadline_s is not None and deadline_s() <= pause_s):
            break
        time.sleep(pause_s)
        rest = replace(task, segments=tuple(s for s in task.segments if s.number in again))
        _add(outcome, _invoke(rest, invoker, store, spill_key, deadline_s), again)
    return outcome


def _invoke(
    task: AnyTask,
    invoker: Invoker,
    store: Store,
    spill_key: Callable[[str], str] | None,
    deadline_s: Callable[[], float] | None,
) -> Outcome:
    if deadline_s is not None:
        task = replace(task, deadline_s=deadline_s())
    try:
        if isinstance(invoker, InProcess):
            return invoker.evaluate(task)
        if spill_key is not None:
            task = replace(task, spill=spill_key(uuid.uuid4().hex))
        outcome = decode_outcome(invoker.invoke(encode_task(task)))
        if outcome.stored is not None:
            key = outcome.stored
            outcome = decode_outcome(store.get(key))
            store.delete(key)
        return outcome
    except RanklogError as error:
        return _all_failed(task, error.message, retryable=error.retryable)
    except Exception as error:  # a worker that broke is an outcome like any other
        return _all_failed(task, f"{type(error).__name__}: {error}", retryable=False)


def _all_failed(task: AnyTask, why: str, *, retryable: bool) -> Outcome:
    failed = [SegmentFailure(s.number, s.key, why, retryable) for s in task.segments]
    return Outcome(FAILED, why, retryable, failed=failed)


def _add(outcome: Outcome, retried: Outcome, again: set[int]) -> None:
    """Fold a retry of some segments into the first outcome."""
    for name, values in retried.columns.items():
        outcome.columns.setdefault(name, []).extend(values)
    outcome.tables |= retried.tables
    outcome.failed = [f for f in outcome.failed if f.number not in again] + retried.failed
    outcome.bytes_read += retried.bytes_read
    outcome.scan_ms += retried.scan_ms
    outcome.scanned += retried.scanned
    outcome.tag = FAILED if outcome.failed else OK
    outcome.reason = outcome.failed[0].reason if outcome.failed else None
    outcome.retryable = any(failure.retryable for failure in outcome.failed)
