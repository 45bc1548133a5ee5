"""Points from lines: numbers that rules and producers left in the metadata of lines are series.

Nothing is stored for them: a key of metadata is a column of its segment, and a series reads that
column, pruned like any query. Shapes: as in telemetry/table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from ranklog.client.line_scans import read_scans
from ranklog.client.line_table import is_null, numbers
from ranklog.client.search import Search
from ranklog.client.series_names import Asked, NameTable, questions
from ranklog.client.series_terms import Terms, names_exactly
from ranklog.layout import schema
from ranklog.layout.index import SegmentIndex
from ranklog.model import query as q
from ranklog.model.point import canonical_json
from ranklog.plan.tasks import Lines
from ranklog.plan.tree import all_of, any_of
from ranklog.telemetry.names import is_dimension, is_series_key, known
from ranklog.telemetry.table import ABSENT, F64, I32, I64, Names, PointTable
from ranklog.telemetry.table import joined as joined_tables

_NUMERIC = ("int", "float")


def numeric_keys(indexes: Iterable[SegmentIndex]) -> list[str]:
    """Keys under which some line in scope has a number."""
    return _keys(indexes, _NUMERIC)


def _keys(indexes: Iterable[SegmentIndex], types: Sequence[str]) -> list[str]:
    found = set()
    for index in indexes:
        for name in (*index.head.columns, *index.head.overflow):
            parsed = schema.parse_metadata_column(name)
            if parsed is not None and parsed[0] in types:
                found.add(parsed[1])
    return sorted(found)


def line_points(
    run: Search, within: Sequence[q.Expr], expr: q.Expr, terms: Terms, by: Sequence[str] = ()
) -> PointTable:
    """Points of the lines `within` that match. `by`: metadata that is a dimension here, too."""
    indexes = run.scope.indexes.values()
    dims = [key for key in _keys(indexes, schema.METADATA_TYPES) if is_dimension(key) or key in by]
    tables = []
    table = NameTable(numeric_keys(indexes))
    for asked in questions(table, expr, terms):
        keys = _keys_of(asked, table, expr)
        if not keys:
            continue
        there = any_of([q.Field(key, ":", (q.Present(),)) for key in keys])
        wanted = all_of([*within, *_no_copies(expr), there, asked.expr])
        shape = Lines(limit=None, whole=False, values=(*keys, *dims), texts=tuple(dims))
        for number, batch in read_scans(run, wanted, shape):
            tables.append(_melted(run.scope.indexes[number], batch, keys, dims))
    return joined_tables(tables)


def _keys_of(asked: Asked, table: NameTable, expr: q.Expr) -> list[str]:
    """Keys that a question is about: a glob finds those that are courses of something, a name any."""
    keys = table.written - asked.names if asked.rest else asked.names
    return sorted(key for key in keys if is_series_key(key) or names_exactly(expr, key))


def _no_copies(expr: q.Expr) -> list[q.Expr]:
    """Console copies of per-rank files would say each point twice."""
    from ranklog.client.warn import terms

    if any(isinstance(term, q.Field) and term.key == "copy" for term in terms(expr)):
        return []
    return [q.Field("copy", ":", (q.Exact("false"),))]


def _melted(
    index: SegmentIndex, batch: Any, keys: Sequence[str], dims: Sequence[str]
) -> PointTable:
    """A segment's rows as points: one for each key that a row has."""
    base = _base(index, batch, dims)
    parts = []
    for key in keys:
        column = batch.column(f"value:{key}")
        rows = np.flatnonzero(~is_null(column)).astype(np.int64)
        if len(rows):
            parts.append(_series(base, key, rows, _doubles(column)[rows]))
    return joined_tables(parts)


def _series(base: PointTable, key: str, rows: I64, value: F64) -> PointTable:
    """The points of one key."""
    of = known(key)
    cut = base.take(rows)
    missing = (value == -1.0) if of.minus_one else np.zeros(len(rows), np.bool_)
    names = Names(
        base.names.run, base.names.host, base.names.stream, (of.series,), (key,), base.names.dims
    )
    value = np.where(missing, np.nan, value if of.factor == 1.0 else value * of.factor)
    return PointTable(
        cut.run, cut.attempt, cut.rank, cut.host, cut.stream, cut.seq, cut.ts_ns, cut.iteration,
        cut.series, cut.written, cut.dims, value, missing, names,
    )  # fmt: skip


@dataclass(slots=True)
class _Codes:
    """Numbers for texts."""

    place: dict[str, int] = field(default_factory=dict)

    def of(self, texts: Iterable[str]) -> I32:
        return np.array([self.place.setdefault(t, len(self.place)) for t in texts], np.int32)


def _base(index: SegmentIndex, batch: Any, dims: Sequence[str]) -> PointTable:
    """Everything of the rows but series and value."""
    streams = [entry.stream for entry in index.head.streams]
    runs, hosts, ids = _Codes(), _Codes(), _Codes()
    run = runs.of(stream.run_id for stream in streams)
    host = hosts.of(stream.host or "" for stream in streams)
    stream_ids = ids.of(entry.stream_id for entry in index.head.streams)
    attempt = np.array([stream.attempt for stream in streams], np.int32)
    own = np.array([ABSENT if s.rank is None else s.rank for s in streams], np.int32)
    at = numbers(batch, schema.STREAM)
    override = numbers(batch, schema.RANK)
    rank = np.where(is_null(batch.column(schema.RANK)), own[at], override)
    rank = np.where(rank == schema.NO_RANK, ABSENT, rank).astype(np.int32)
    iteration = numbers(batch, schema.ITERATION)
    iteration = np.where(is_null(batch.column(schema.ITERATION)), ABSENT, iteration)
    codes, texts = _dims(batch, dims)
    rows = len(batch)
    return PointTable(
        run[at], attempt[at], rank, host[at], stream_ids[at], numbers(batch, schema.SEQ),
        numbers(batch, schema.TS), iteration, np.zeros(rows, np.int32), np.zeros(rows, np.int32),
        codes, np.empty(rows), np.zeros(rows, np.bool_),
        Names(tuple(runs.place), tuple(hosts.place), tuple(ids.place), (), (), texts),
    )  # fmt: skip


def _dims(batch: Any, dims: Sequence[str]) -> tuple[I32, tuple[str, ...]]:
    """Each row's dimensions as a code; each distinct combination becomes JSON once."""
    codes = np.zeros(len(batch), np.int64)
    combined: list[dict[str, Any]] = [{}]
    for key in dims:
        code, values = _values(batch, key)
        if len(values) == 1:
            continue
        codes = codes * len(values) + code
        distinct, codes = np.unique(codes, return_inverse=True)
        combined = [
            combined[at // len(values)] | _one(key, values[at % len(values)])
            for at in distinct.tolist()
        ]
    return codes.astype(np.int32), tuple(map(canonical_json, combined))


def _one(key: str, value: Any) -> dict[str, Any]:
    return {} if value is None else {key: value}


def _values(batch: Any, key: str) -> tuple[I64, list[Any]]:
    """(code per row, values); code 0 is none."""
    texts = batch.column(f"text:{key}").combine_chunks().dictionary_encode()
    code = np.asarray(texts.indices.fill_null(-1).to_numpy(zero_copy_only=False)) + 1
    values: list[Any] = [None, *texts.dictionary.to_pylist()]
    column = batch.column(f"value:{key}")
    has = ~is_null(column)
    if has.any():
        distinct, place = np.unique(_doubles(column)[has], return_inverse=True)
        code[has] = len(values) + place
        values += [int(v) if float(v).is_integer() else v for v in distinct.tolist()]
    return code.astype(np.int64), values


def _doubles(column: Any) -> F64:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return np.asarray(column.fill_null(0.0).to_numpy(zero_copy_only=False), np.float64)
