"""Evaluate one task: read each of its segments with DuckDB and fold the rows into one outcome.

What can't be read is named in the outcome; nothing a segment holds raises.
"""

from __future__ import annotations

import base64
import functools
import heapq
import importlib.util
import itertools
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar

import duckdb

from ranklog import limits
from ranklog.errors import Corrupt, RanklogError
from ranklog.layout import schema
from ranklog.plan.tasks import (
    FAILED,
    OK,
    Lines,
    Outcome,
    PointTask,
    SegmentFailure,
    SegmentScan,
    Task,
    decode_task,
    encode_outcome,
)
from ranklog.scan.engine import Engine, raise_if_stopped, reason, shared_engine
from ranklog.scan.files import RangedObject, planned_ranges
from ranklog.scan.statement import Statement, build_statement
from ranklog.scan.verify import check_file
from ranklog.store.protocol import Store

_FETCH_ROWS = 16_384
# Importing Arrow takes as long as reading so many segments with DuckDB in place of it, 0.15 s.
_ARROW_AFTER = 64
_read_without = itertools.count()

T = TypeVar("T")
# A task's columns of one segment; None: it takes a statement.
Few: TypeAlias = "Callable[[Task, SegmentScan, str | RangedObject], dict[str, list[Any]] | None]"


def evaluate(data: bytes, store: Store, engine: Engine | None = None) -> bytes:
    """Task bytes to outcome bytes: the whole of the scan function."""
    task = decode_task(data)
    engine = engine or shared_engine()
    if isinstance(task, PointTask):
        from ranklog.scan.points import evaluate_points

        outcome = evaluate_points(task, store, engine, travels=True)
    else:
        outcome = evaluate_task(task, store, engine)
    encoded = encode_outcome(outcome)
    if len(encoded) <= limits.OUTCOME_INLINE_BYTES_MAX or task.spill is None:
        return encoded
    store.put(task.spill, encoded)
    return encode_outcome(Outcome(tag=outcome.tag, stored=task.spill))


def evaluate_task(task: Task, store: Store, engine: Engine) -> Outcome:
    """Every segment's rows in columns; `segment` says which segment a row is from."""
    started = time.monotonic()
    outcome = Outcome()
    best = _Best(task.shape)
    for segment in _in_order(task):
        if best.beats(segment):
            continue
        left = _seconds_left(task, started)
        if left is not None and left <= 0:
            _fail(outcome, segment, "not reached in time", late=True)
            continue
        rows = _read_segment(task, segment, store, engine, left, outcome)
        if rows is not None:
            _append(outcome.columns, rows, best)
    if outcome.failed:
        outcome.tag, outcome.reason = FAILED, outcome.failed[0].reason
        outcome.retryable = any(failure.retryable for failure in outcome.failed)
    else:
        outcome.tag = OK
    outcome.scan_ms = (time.monotonic() - started) * 1000
    return outcome


def _in_order(task: Task) -> Sequence[SegmentScan]:
    """With a limit, the segments that can hold the first lines come first."""
    if not isinstance(task.shape, Lines) or task.shape.limit is None:
        return task.segments
    if task.shape.newest:
        return sorted(task.segments, key=lambda segment: -segment.max_ts)
    return sorted(task.segments, key=lambda segment: segment.min_ts)


def _seconds_left(task: Task, started: float) -> float | None:
    if task.deadline_s is None:
        return None
    return task.deadline_s - (time.monotonic() - started)


def _fail(
    outcome: Outcome, segment: SegmentScan, why: str, *, retryable: bool = False, late: bool = False
) -> None:
    outcome.failed.append(SegmentFailure(segment.number, segment.key, why, retryable, late))


class _Best:
    """The times of the `limit` first lines so far: what lies beyond the last can't be wanted."""

    def __init__(self, shape: Any) -> None:
        self._limit = shape.limit if isinstance(shape, Lines) else None
        self._sign = 1 if isinstance(shape, Lines) and shape.newest else -1
        self._heap: list[int] = []  # the worst kept time is the smallest

    def add(self, times: Sequence[int]) -> list[int] | None:
        """Count these times in; positions of the rows to keep, None: all."""
        if self._limit is None:
            return None
        for ts in times:
            if len(self._heap) < self._limit:
                heapq.heappush(self._heap, ts * self._sign)
            else:
                heapq.heappushpop(self._heap, ts * self._sign)
        worst = self._worst()
        if worst is None:
            return None
        return [i for i, ts in enumerate(times) if ts * self._sign >= worst]

    def beats(self, segment: SegmentScan) -> bool:
        """Whether no line of the segment can be among the first."""
        worst = self._worst()
        if worst is None:
            return False
        return (segment.max_ts if self._sign == 1 else -segment.min_ts) < worst

    def _worst(self) -> int | None:
        if self._limit is None or len(self._heap) < self._limit:
            return None
        return self._heap[0] if self._heap else math.inf  # type: ignore[return-value]


def _append(columns: dict[str, list[Any]], rows: dict[str, list[Any]], best: _Best) -> None:
    keep = best.add(rows[schema.TS]) if schema.TS in rows else None
    for name, values in rows.items():
        kept = values if keep is None else [values[i] for i in keep]
        columns.setdefault(name, []).extend(kept)


def _read_segment(
    task: Task,
    segment: SegmentScan,
    store: Store,
    engine: Engine,
    seconds: float | None,
    outcome: Outcome,
) -> dict[str, list[Any]] | None:
    """The segment's columns, or None with the failure noted."""
    few = arrow_reader()
    columns = _run(task, segment, store, engine, seconds, outcome, _fetch, few)
    return None if columns is None else _shape_rows(columns, segment)


def arrow_reader() -> Few | None:
    """Reads few lines faster than DuckDB, where Arrow is installed. A process that has not imported it
    reads its first segments without: most commands are done before that would have paid."""
    if "pyarrow" not in sys.modules and next(_read_without) < _ARROW_AFTER:
        return None
    return _arrow_reader()


@functools.cache
def _arrow_reader() -> Few | None:
    if importlib.util.find_spec("pyarrow") is None:
        return None
    from ranklog.scan.direct import read_few

    return read_few


def read_batches(
    task: Task,
    segment: SegmentScan,
    store: Store,
    engine: Engine,
    outcome: Outcome,
    take: Callable[[Any], T],
) -> T | None:
    """What `take` makes of a reader of Arrow batches of the segment's rows, for bulk work; None with
    the failure noted: then what it took before is to be thrown away."""

    def fetch(cursor: duckdb.DuckDBPyConnection, statement: Statement) -> T:
        found = cursor.sql(statement.sql, params=statement.parameters)
        return take(found.to_arrow_reader(_FETCH_ROWS))

    return _run(task, segment, store, engine, task.deadline_s, outcome, fetch)


def _run(
    task: Task,
    segment: SegmentScan,
    store: Store,
    engine: Engine,
    seconds: float | None,
    outcome: Outcome,
    fetch: Callable[[duckdb.DuckDBPyConnection, Statement], T],
    few: Callable[[Task, SegmentScan, str | RangedObject], T | None] | None = None,
) -> T | None:
    """What `few` reads of the segment, else what `fetch` makes of its statement; every failure is
    noted, none raised."""
    try:
        with opened(segment, store, engine, outcome) as (path, item):
            if few is not None:
                raise_if_stopped()
                found = few(task, segment, item or path)
                if found is not None:
                    outcome.scanned += 1
                    return found
            statement = build_statement(task, segment, path)
            with engine.cursor(seconds) as cursor:
                found = fetch(cursor, statement)
    except duckdb.InterruptException:
        _fail(outcome, segment, "not done in time", late=True)
    except duckdb.OutOfMemoryException as error:
        _fail(outcome, segment, f"out of memory: {reason(error)}", retryable=True)
    except duckdb.Error as error:
        _fail(outcome, segment, f"can't be read: {reason(error)}", retryable=False)
    except RanklogError as error:
        _fail(outcome, segment, error.message, retryable=error.retryable)
    except OSError as error:
        _fail(outcome, segment, f"can't be read: {error}", retryable=True)
    else:
        outcome.scanned += 1
        return found
    return None


@contextmanager
def opened(
    segment: SegmentScan, store: Store, engine: Engine, outcome: Outcome
) -> Iterator[tuple[str, RangedObject | None]]:
    """A path at which DuckDB reads the segment, and what it then reads where that is no file; what is
    read counts in the outcome."""
    local = store.local_path(segment.key)
    if local is not None:
        found = local.stat() if local.exists() else None
        if found is None or found.st_size != segment.length:
            shown = "missing" if found is None else f"{found.st_size} bytes"
            raise Corrupt(f"segment is {shown}, its index says {segment.length} bytes")
        check_file(local, found, segment)
        outcome.bytes_read += sum(end - start for start, end in planned_ranges(segment))
        yield str(local), None
        return
    item = RangedObject(store, segment, engine.files.pool)
    path = engine.files.add(item)
    try:
        item.fetch(planned_ranges(segment))
        yield path, item
    except duckdb.Error as error:
        if item.damage is None:
            raise
        raise item.damage from error
    finally:
        engine.files.remove(path)
        outcome.bytes_read += item.bytes_read
    if item.damage is not None:
        raise item.damage


def _fetch(cursor: duckdb.DuckDBPyConnection, statement: Statement) -> dict[str, list[Any]]:
    cursor.execute(statement.sql, statement.parameters)
    columns: dict[str, list[Any]] = {name: [] for name in statement.columns}
    lists = list(columns.values())
    while rows := cursor.fetchmany(_FETCH_ROWS):
        for values, new in zip(lists, zip(*rows, strict=True), strict=True):
            values.extend(new)
    return columns


def _shape_rows(columns: dict[str, list[Any]], segment: SegmentScan) -> dict[str, list[Any]]:
    """JSON values only: metadata as one object per line, bytes as base64, NaN as text."""
    length = len(next(iter(columns.values())))
    shaped: dict[str, list[Any]] = {"segment": [segment.number] * length}
    metadata: dict[str, list[Any]] = {}
    for name, values in columns.items():
        if schema.parse_metadata_column(name):
            metadata[name] = values
        elif name == schema.OVERFLOW:
            shaped[name] = [None if text is None else json.loads(text) for text in values]
        elif name.startswith("buckets/"):
            shaped[name] = [_pairs(found) for found in values]
        elif name == schema.RAW:
            shaped[name] = [None if v is None else base64.b64encode(v).decode() for v in values]
        else:
            shaped[name] = _finite(values) if _is_float(name) else values
    if schema.TEXT in columns:
        shaped["metadata"] = _fold_metadata(metadata, shaped.pop(schema.OVERFLOW, None), length)
        shaped.setdefault(schema.RAW, [None] * length)
    return shaped


def _is_float(name: str) -> bool:
    return name.startswith(("value:", "float/", "sum/"))


def _pairs(histogram: dict[int, int] | None) -> list[list[int]]:
    """Numbers of buckets, and how many values each has."""
    found = histogram or {}
    return [list(found.keys()), list(found.values())]


def _finite(values: list[Any]) -> list[Any]:
    return [v if v is None or math.isfinite(v) else _float_name(v) for v in values]


def _float_name(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _fold_metadata(
    columns: dict[str, list[Any]], overflow: list[Any] | None, length: int
) -> list[Any]:
    """Per line `{"int:k": 1, "float:k": 0.5, "str:k": "x"}`, None where there is none."""
    lines: list[Any] = list(overflow) if overflow is not None else [None] * length
    for name, values in columns.items():
        if name.startswith("float:"):
            values = _finite(values)
        for i, value in enumerate(values):
            if value is not None:
                if lines[i] is None:
                    lines[i] = {}
                lines[i][name] = value
    return lines
