"""Evaluate one task over segments of points: what can't be read is named, nothing raises.

Where Arrow is installed it reads; in the layer of scan functions DuckDB does (scan/point_sql).
"""

from __future__ import annotations

import functools
import importlib.util
import time
from collections.abc import Callable
from typing import Any, TypeAlias

from ranklog.errors import Corrupt, RanklogError
from ranklog.plan.tasks import FAILED, OK, Outcome, PointTask, SegmentFailure, SegmentScan
from ranklog.scan.engine import Engine, raise_if_stopped, reason
from ranklog.scan.evaluate import opened
from ranklog.scan.files import RangedObject
from ranklog.scan.point_sql import query_points
from ranklog.store.protocol import Store

ReadArrow: TypeAlias = "Callable[[PointTask, SegmentScan, str | RangedObject], Any]"


def evaluate_points(
    task: PointTask, store: Store, engine: Engine, *, travels: bool = False
) -> Outcome:
    """The matching points of every segment, as Arrow tables; where the outcome `travels`, or there is
    no Arrow, as columns of lists, of which `segment` says where a row is from."""
    started = time.monotonic()
    read = None if travels else _arrow()
    outcome = Outcome()
    for segment in task.segments:
        left = None
        if task.deadline_s is not None:
            left = task.deadline_s - (time.monotonic() - started)
            if left <= 0:
                _fail(outcome, segment, "not reached in time", late=True)
                continue
        _read(task, segment, store, engine, left, outcome, read)
    outcome.tag = FAILED if outcome.failed else OK
    outcome.reason = outcome.failed[0].reason if outcome.failed else None
    outcome.retryable = any(failure.retryable for failure in outcome.failed)
    outcome.scan_ms = (time.monotonic() - started) * 1000
    return outcome


@functools.cache
def _arrow() -> ReadArrow | None:
    if importlib.util.find_spec("pyarrow") is None:
        return None
    from ranklog.scan.point_arrow import read_points

    return read_points


def _read(
    task: PointTask,
    segment: SegmentScan,
    store: Store,
    engine: Engine,
    seconds: float | None,
    outcome: Outcome,
    read: ReadArrow | None,
) -> None:
    try:
        with opened(segment, store, engine, outcome) as (path, item):
            raise_if_stopped()
            if read is not None:
                outcome.tables[segment.number] = _read_arrow(read, task, segment, item or path)
            else:
                with engine.cursor(seconds) as cursor:
                    rows = query_points(cursor, task, segment, path)
                for name, values in rows.items():
                    outcome.columns.setdefault(name, []).extend(values)
    except RanklogError as error:
        _fail(outcome, segment, error.message, retryable=error.retryable)
    except OSError as error:
        _fail(outcome, segment, f"can't be read: {error}", retryable=True)
    except Exception as error:
        late, retryable, why = _of_duckdb(error)
        _fail(outcome, segment, why, retryable=retryable, late=late)
    else:
        outcome.scanned += 1


def _read_arrow(
    read: ReadArrow, task: PointTask, segment: SegmentScan, source: str | RangedObject
) -> Any:
    try:
        return read(task, segment, source)
    except (ValueError, KeyError, IndexError, TypeError) as error:  # Arrow's own are among them
        raise Corrupt(f"can't be read: {error}") from error


def _of_duckdb(error: Exception) -> tuple[bool, bool, str]:
    """Whether time was over, whether it may pass, and why. Raises what is not DuckDB's."""
    import duckdb

    if isinstance(error, duckdb.InterruptException):
        return True, False, "not done in time"
    if isinstance(error, duckdb.OutOfMemoryException):
        return False, True, f"out of memory: {reason(error)}"
    if isinstance(error, duckdb.Error):
        return False, False, f"can't be read: {reason(error)}"
    raise error


def _fail(
    outcome: Outcome, segment: SegmentScan, why: str, *, retryable: bool = False, late: bool = False
) -> None:
    outcome.failed.append(SegmentFailure(segment.number, segment.key, why, retryable, late))
