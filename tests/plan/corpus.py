"""Small segments from lists of lines, written by the real writer, and an oracle that reads rows."""

from __future__ import annotations

import io
import math
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import re2

from ranklog.layout.build import Beside, build_segment, find_facts
from ranklog.layout.index import SegmentIndex
from ranklog.layout.rows import NO_HEAD, MetadataValues, Rows
from ranklog.model import query as q
from ranklog.model.frame import NO_ITERATION, NO_LEVEL, STREAM_RANK, CallSite
from ranklog.model.index import SegmentRef
from ranklog.model.stream import Stream
from ranklog.plan.prune import Pruned

BASE_NS = 1_777_636_800 * 10**9

STREAMS = tuple(
    Stream("t", run, "l1", attempt, host, rank, rank, channel, "i")
    for run, attempt, host, rank, channel in [
        ("a", 0, "gpu-01.cluster", 0, "stdout"),
        ("a", 1, "gpu-02", 1, "stderr"),
        ("b", 0, None, None, "kernel"),
    ]
)
SITES = (
    CallSite("train/trainer.py:88", "step", "train"),
    CallSite("data.py:3", None, None),
    CallSite("other_trainer.py:88", "run", None),
)


@dataclass(frozen=True)
class Row:
    """A line; `site` indexes SITES from 1, 0 is none."""

    text: str
    body_at: int = 0
    stream: int = 0
    level: int = NO_LEVEL
    iteration: int = NO_ITERATION
    rank: int = STREAM_RANK
    site: int = 0
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Built:
    """`rows` in the segment's order, with the template id of each."""

    index: SegmentIndex
    rows: list[Row]
    tids: list[int]


def build(lines: list[Row]) -> Built:
    """One segment of these lines; line i is seq i of its stream, at BASE_NS + i seconds."""
    order = np.argsort([line.stream for line in lines], kind="stable")
    rows = _rows(lines)
    built = build_segment(rows, find_facts(rows), order, rows.metadata, Beside())
    data = built.segment.data
    ref = SegmentRef("data/x.parquet", len(data), built.segment.hash, "")
    index = SegmentIndex.open(built.index(ref), "index/x.idx")
    table = pq.read_table(io.BytesIO(data), columns=["seq", "tid"])
    seqs = table.column("seq").to_pylist()
    return Built(index, [lines[seq] for seq in seqs], table.column("tid").to_pylist())


def _rows(lines: list[Row]) -> Rows:
    encoded = [line.text.encode() for line in lines]
    count = len(lines)
    return Rows(
        streams=STREAMS,
        stream_ids=tuple(stream.stream_id for stream in STREAMS),
        sites=SITES,
        stream=np.array([line.stream for line in lines], np.int32),
        seq=np.arange(count, dtype=np.int64),
        ts=BASE_NS + np.arange(count, dtype=np.int64) * 10**9,
        level=np.array([line.level for line in lines], np.int16),
        iteration=np.array([line.iteration for line in lines], np.int64),
        rank=np.array([line.rank for line in lines], np.int32),
        group=np.full(count, NO_HEAD, np.int64),
        flags=np.zeros(count, np.int16),
        body_at=np.array([len(line.text[: line.body_at].encode()) for line in lines], np.int32),
        site=np.array([line.site for line in lines], np.int32),
        text=np.frombuffer(b"".join(encoded), np.uint8),
        offsets=np.cumsum([0, *map(len, encoded)], dtype=np.int64),
        metadata=_metadata(lines),
        raw_rows=np.empty(0, np.int64),
        raw=pa.array([], pa.binary()),
    )


def _metadata(lines: list[Row]) -> tuple[MetadataValues, ...]:
    found: dict[tuple[str, str], list[tuple[int, Any]]] = {}
    for i, line in enumerate(lines):
        for key, value in line.metadata.items():
            found.setdefault((key, type(value).__name__), []).append((i, value))
    return tuple(
        MetadataValues(
            key,
            kind,
            np.array([row for row, _ in pairs], np.int64),
            pa.array([value for _, value in pairs], pa.string())
            if kind == "str"
            else np.array(
                [value for _, value in pairs], {"int": np.int64, "float": np.float64}[kind]
            ),
        )
        for (key, kind), pairs in sorted(found.items())
    )


def assert_keeps(built: Built, expr: q.Expr, pruned: Pruned) -> None:
    """Every row that matches is left; where the pruner is certain, every row that is left matches."""
    groups = built.index.head.row_groups
    left = {row for low, high in pruned.rows for row in range(low, high)}
    for number, (row, tid) in enumerate(zip(built.rows, built.tids, strict=True)):
        matches = holds(expr, row)
        group = next(i for i, g in enumerate(groups) if number < g.first_row + g.rows)
        if matches:
            assert group in pruned.row_groups, (row, pruned)
            assert pruned.tids is None or tid in pruned.tids, (row, pruned)
            assert number in left, (row, pruned)
        elif pruned.certain:
            assert number not in left, (row, pruned)
    assert {w.row_group for w in pruned.skipped} == {*range(len(groups))} - {*pruned.row_groups}


def holds(expr: q.Expr, row: Row) -> bool:
    """What the language's page says, one row at a time."""
    if isinstance(expr, q.Everything):
        return True
    if isinstance(expr, q.Not):
        return not holds(expr.item, row)
    if isinstance(expr, q.And):
        return all(holds(item, row) for item in expr.items)
    if isinstance(expr, q.Or):
        return any(holds(item, row) for item in expr.items)
    if isinstance(expr, q.Contains):
        return expr.literal in row.text
    if isinstance(expr, q.Matches):
        return matches(expr.pattern, expr.flags, row.text)
    assert isinstance(expr, q.Field), expr
    values = _values_of(expr.key, row)
    found = [v for v in values if v is not None]
    if expr.op == "!=":
        (wanted,) = expr.values
        if isinstance(wanted, q.Null):
            return bool(found)
        return any(_comparable(v, wanted) and not _is(expr.key, v, wanted) for v in found)
    return any(_value_holds(expr, wanted, found) for wanted in expr.values)


def matches(pattern: str, flags: str, text: str) -> bool:
    return re2.search(f"(?{flags}){pattern}" if flags else pattern, text) is not None


def _values_of(key: str, row: Row) -> list[Any]:
    stream = STREAMS[row.stream]
    site = SITES[row.site - 1] if row.site else CallSite(None)
    rank = stream.rank if row.rank == STREAM_RANK else row.rank
    builtin = {
        "level": None if row.level == NO_LEVEL else row.level,
        "iteration": None if row.iteration == NO_ITERATION else row.iteration,
        "rank": None if rank == -1 else rank,
        "run": stream.run,
        "host": stream.host,
        "channel": stream.channel,
        "attempt": stream.attempt,
        "call_site": site.site,
        "function": site.function,
        "logger": site.logger,
    }
    return [builtin[key] if key in builtin else row.metadata.get(key)]


def _value_holds(expr: q.Field, wanted: q.Value, found: list[Any]) -> bool:
    if isinstance(wanted, q.Null):
        return not found
    if isinstance(wanted, q.Present):
        return bool(found)
    if expr.op == ":":
        return any(_is(expr.key, value, wanted) for value in found)
    assert isinstance(wanted, q.Number), expr
    comparisons = {">": "__gt__", "<": "__lt__", ">=": "__ge__", "<=": "__le__"}
    return any(
        not isinstance(value, str)
        and getattr(float(value), comparisons[expr.op])(float(wanted.value))
        for value in found
    )


def _comparable(value: Any, wanted: q.Value) -> bool:
    """Whether they are of one kind and no NaN takes part."""
    numeric = isinstance(wanted, (q.Number, q.Range))
    if numeric != (not isinstance(value, str)):
        return False
    nan = isinstance(value, float) and math.isnan(value)
    return not nan


def _is(key: str, value: Any, wanted: q.Value) -> bool:
    if isinstance(wanted, q.Number):
        if isinstance(value, str):
            return False
        both_nan = value != value and wanted.value != wanted.value
        return both_nan or value == wanted.value
    if isinstance(wanted, q.Range):
        if isinstance(value, str) or value != value:
            return False
        above = wanted.low is None or value >= wanted.low
        upper = wanted.high
        below = upper is None or (value <= upper if wanted.inclusive else value < upper)
        return above and below
    if not isinstance(value, str):
        return False
    if key == "call_site":
        tails = [value, re.sub(r":[0-9]+$", "", value)]
        names = {t[i:] for t in tails for i in range(len(t)) if i == 0 or t[i - 1] == "/"}
        return any(_text_is(name, wanted) for name in names)
    if key == "host":
        return _text_is(value, wanted) or _text_is(value.partition(".")[0], wanted)
    return _text_is(value, wanted)


def _text_is(value: str, wanted: q.Value) -> bool:
    if isinstance(wanted, q.Exact):
        return value == wanted.text
    if isinstance(wanted, q.Glob):
        return matches(wanted.pattern, "", value)
    assert isinstance(wanted, q.RegexValue)
    return matches(wanted.pattern, wanted.flags, value)
