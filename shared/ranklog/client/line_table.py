"""Fetches lines as columns: identity, rank, time, iteration, call site and template, never all text.

Each segment's rows come as Arrow batches and become numpy at once: 10 million lines take some 350 MB.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from ranklog.client.line_scans import read_scans
from ranklog.client.search import Search
from ranklog.layout import schema
from ranklog.layout.index import SegmentIndex
from ranklog.model import query as q
from ranklog.model.stream import Stream
from ranklog.plan.tasks import Lines
from ranklog.spmd.table import ABSENT, I32, I64, Key, LineTable

_COLUMNS = (schema.TID, schema.LEVEL, schema.CALL_SITE)
_TYPES = (np.int32, np.int64, np.int64, np.int32, np.int16, np.int64, np.int32)


def fetch_table(run: Search, expr: q.Expr) -> LineTable:
    """Lines that match, without indented ones. What can't be read the answer says."""
    builder = _Builder()
    for number, batch in _batches(run, expr, _COLUMNS):
        builder.add(run.scope.indexes[number], batch)
    return builder.table()


def fetch_texts(run: Search, expr: q.Expr) -> list[tuple[str, int, str, int]]:
    """(stream id, seq, text, byte at which the body begins) of the lines that match."""
    found: list[tuple[str, int, str, int]] = []
    for number, batch in _batches(run, expr, (schema.TEXT, schema.BODY_AT)):
        entries = run.scope.indexes[number].head.streams
        names = (schema.STREAM, schema.SEQ, schema.TEXT, schema.BODY_AT)
        for stream, seq, text, body_at in zip(
            *(batch.column(name).to_pylist() for name in names), strict=True
        ):
            found.append((entries[stream].stream_id, seq, text, body_at or 0))
    return found


def _batches(run: Search, expr: q.Expr, columns: tuple[str, ...]) -> Iterator[tuple[int, Any]]:
    """(segment's number, rows) of each segment. A table of one segment is in memory at a time."""
    return read_scans(run, expr, Lines(limit=None, whole=False, columns=columns))


@dataclass(slots=True)
class _Builder:
    """Numbers streams and keys over segments; gathers their columns."""

    streams: dict[str, int] = field(default_factory=dict)
    named: list[tuple[str, Stream]] = field(default_factory=list)
    keys: dict[Key, int] = field(default_factory=dict)
    parts: list[tuple[Any, ...]] = field(default_factory=list)

    def add(self, index: SegmentIndex, batch: Any) -> None:
        """Take a segment's rows, but frames of tracebacks and other indented lines."""
        key = self._key_numbers(index, batch)
        stream = numbers(batch, schema.STREAM)
        entries = index.head.streams
        own = np.array([_or_absent(e.stream.rank) for e in entries], np.int32)
        places = np.array([self._stream(e.stream_id, e.stream) for e in entries], np.int32)
        override = numbers(batch, schema.RANK)
        # -1 is "no rank" where it is said, and "the stream's" where nothing is
        said = np.where(is_null(batch.column(schema.RANK)), own[stream], override)
        kept = slice(None) if (key != ABSENT).all() else key != ABSENT
        names = (schema.TS, schema.ITERATION, schema.LEVEL, schema.SEQ)
        ts, iteration, level, seq = (numbers(batch, name) for name in names)
        columns: tuple[Any, ...] = (said, ts, iteration, key, level, seq, places[stream])
        self.parts.append(tuple(c.astype(k)[kept] for c, k in zip(columns, _TYPES, strict=True)))

    def _stream(self, stream_id: str, stream: Stream) -> int:
        place = self.streams.setdefault(stream_id, len(self.streams))
        if place == len(self.named):
            self.named.append((stream_id, stream))
        return place

    def _key_numbers(self, index: SegmentIndex, batch: Any) -> I32:
        """Numbers of (call site, template): each pair that the segment has is looked up once."""
        sites = batch.column(schema.CALL_SITE).combine_chunks()
        coded = sites.dictionary_encode(null_encoding="encode")
        names = coded.dictionary.to_pylist()
        code: I64 = _of(coded.indices)
        tid = numbers(batch, schema.TID)
        pairs = tid * len(names) + code
        known = np.zeros(int(pairs.max()) + 1, np.bool_)
        known[pairs] = True
        number = np.full(len(known), ABSENT, np.int32)
        for pair in np.flatnonzero(known).tolist():
            at, site = divmod(pair, len(names))
            key = Key(names[site], index.templates[at] if at else "")
            if not key.template[:1].isspace():
                number[pair] = self.keys.setdefault(key, len(self.keys))
        found: I32 = number[pairs]
        return found

    def table(self) -> LineTable:
        columns: list[Any] = [np.empty(0, kind) for kind in _TYPES]
        if self.parts:
            columns = [np.concatenate(column) for column in zip(*self.parts, strict=True)]
            self.parts.clear()
        rank, ts_ns, iteration, key, level, seq, stream = columns
        keys = tuple(self.keys)
        return LineTable(rank, ts_ns, iteration, key, level, seq, stream, keys, self.named)


def _or_absent(value: int | None) -> int:
    return ABSENT if value is None else value


def is_null(column: Any) -> Any:
    """Which rows have no value, as numpy."""
    return _of(column.is_null())


def numbers(batch: Any, name: str) -> I64:
    """A column as int64, ABSENT where there is none."""
    column = batch.column(name)
    values = _of(column.fill_null(ABSENT) if column.null_count else column)
    found: I64 = values.astype(np.int64, copy=False)
    return found


def _of(column: Any) -> Any:
    """A column of numbers or flags as numpy."""
    if isinstance(column, pa.ChunkedArray):
        chunks: Sequence[Any] = column.chunks
        parts = [chunk.to_numpy(zero_copy_only=False) for chunk in chunks]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)
    return column.to_numpy(zero_copy_only=False)
