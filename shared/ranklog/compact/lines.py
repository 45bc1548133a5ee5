"""Segments of lines back to rows: the inverse of `layout.segment`, column by column.

Shapes: n rows of all segments, one segment after the other, in the order of the indexes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from ranklog.compact.metadata import Metadata
from ranklog.compact.streams import Described, Hidden, Streams
from ranklog.layout import schema
from ranklog.layout.rows import I32, I64, NO_HEAD, Rows
from ranklog.model.frame import NO_ITERATION, NO_LEVEL, NO_SITE, STREAM_RANK, CallSite

# Column -> (type, what stands for null).
_NUMBERS = {
    schema.SEQ: (np.int64, 0),
    schema.TS: (np.int64, 0),
    schema.LEVEL: (np.int16, NO_LEVEL),
    schema.ITERATION: (np.int64, NO_ITERATION),
    schema.RANK: (np.int32, STREAM_RANK),
    schema.GROUP: (np.int64, NO_HEAD),
    schema.FLAGS: (np.int16, 0),
    schema.BODY_AT: (np.int32, 0),
}


def read_lines(
    indexes: Sequence[Described], segments: Sequence[bytes | None], hidden: Hidden
) -> tuple[Rows, Streams]:
    """Rows of the segments, in the order of the indexes; None where an index has only notes.

    Raises what Arrow raises on a damaged segment (pa.ArrowException).
    """
    streams, sites, metadata = Streams(), _Sites(), Metadata()
    columns: dict[str, list[npt.NDArray[Any]]] = {name: [] for name in _NUMBERS}
    places: list[I32] = []
    lengths: list[I64] = []
    texts: list[npt.NDArray[np.uint8]] = []
    raw_rows: list[I64] = []
    raw = []
    for index, data in zip(indexes, segments, strict=True):
        of_streams = streams.add(index.head, hidden)
        if data is None:
            continue
        table = pq.read_table(pa.BufferReader(data), use_threads=False)
        streams.hold(len(table))
        places.append(of_streams[number_column(table, schema.STREAM, np.int32, 0)])
        for name, (dtype, absent) in _NUMBERS.items():
            columns[name].append(number_column(table, name, dtype, absent))
        sites.add(table)
        metadata.add(table)
        sizes, text = _text(table.column(schema.TEXT))
        lengths.append(sizes)
        texts.append(text)
        if schema.RAW in table.column_names:
            values = table.column(schema.RAW).combine_chunks()
            at = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
            raw_rows.append(at + metadata.rows - len(table))
            raw.append(values.drop_null().cast(pa.binary()))
    numbers = {name: _joined(parts, _NUMBERS[name][0]) for name, parts in columns.items()}
    offsets = np.append(np.int64(0), np.cumsum(_joined(lengths, np.int64)))
    rows = Rows(
        streams=streams.streams,
        stream_ids=streams.ids,
        sites=sites.found,
        stream=_joined(places, np.int32),
        group=numbers.pop(schema.GROUP),
        site=_joined(sites.columns, np.int32),
        text=_joined(texts, np.uint8),
        offsets=offsets.astype(np.int64),
        metadata=metadata.columns(),
        raw_rows=_joined(raw_rows, np.int64),
        raw=pa.concat_arrays(raw) if raw else pa.array([], pa.binary()),
        **numbers,
    )
    return rows, streams


def number_column(table: Any, name: str, dtype: Any, absent: int) -> npt.NDArray[Any]:
    """A column as numpy, with a number for null; all null where the segment has no such column."""
    if name not in table.column_names:
        return np.full(len(table), absent, dtype)
    column = table.column(name).combine_chunks()
    if column.null_count:
        column = column.fill_null(pa.scalar(absent, column.type))
    values: npt.NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return values.astype(dtype, copy=False)


def _joined(parts: Sequence[npt.NDArray[Any]], dtype: Any) -> npt.NDArray[Any]:
    return np.concatenate(parts).astype(dtype, copy=False) if parts else np.empty(0, dtype)


def _text(column: Any) -> tuple[I64, npt.NDArray[np.uint8]]:
    """Lengths, and the bytes one after the other."""
    lengths, texts = [], []
    for chunk in column.chunks:
        chunk = chunk.cast(pa.large_string())
        _, places, data = chunk.buffers()
        edges = np.frombuffer(places, np.int64)[chunk.offset : chunk.offset + len(chunk) + 1]
        lengths.append(np.diff(edges))
        bare = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
        texts.append(bare[edges[0] : edges[-1]])
    return _joined(lengths, np.int64), _joined(texts, np.uint8)


class _Sites:
    """Distinct (call site, function, logger) of all segments, and 1 + the place of each row's."""

    def __init__(self) -> None:
        self._places = {CallSite(None): NO_SITE}
        self.columns: list[I32] = []

    @property
    def found(self) -> tuple[CallSite, ...]:
        return tuple(self._places)[1:]

    def add(self, table: Any) -> None:
        key = np.zeros(len(table), np.int64)
        names = []
        for name in (schema.CALL_SITE, schema.FUNCTION, schema.LOGGER):
            codes, texts = _codes(table.column(name))
            key = key * len(texts) + codes
            names.append(texts)
        distinct, place = np.unique(key, return_inverse=True)
        site, function, logger = names
        found = []
        for code in distinct.tolist():
            rest, last = divmod(code, len(logger))
            first, middle = divmod(rest, len(function))
            one = CallSite(site[first], function[middle], logger[last])
            found.append(self._places.setdefault(one, len(self._places)))
        self.columns.append(np.array(found, np.int32)[place.reshape(-1)])


def _codes(column: Any) -> tuple[I64, list[str | None]]:
    """Which text each row has, and the texts; the first is none."""
    array = column.combine_chunks()
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    codes = array.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes + 1, [None, *array.dictionary.to_pylist()]
