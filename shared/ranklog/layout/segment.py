"""Rows in order to one segment: columns, Parquet bytes; and where each column chunk lies in them.

Shapes: n rows of the segment. Encodings and levels are measured (docs/storage-format.md).
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ranklog.layout import schema
from ranklog.layout.decimals import as_decimals
from ranklog.layout.encoding import writer_options
from ranklog.layout.footer import slim_footer
from ranklog.layout.keys import hash_segment
from ranklog.layout.metadata import MetadataColumns
from ranklog.layout.rows import I32, I64, NO_HEAD, Rows
from ranklog.model.frame import NO_ITERATION, NO_LEVEL, NO_SITE, STREAM_RANK
from ranklog.model.stream import Stream

_REQUIRED = (
    schema.TID,
    schema.STREAM,
    schema.SEQ,
    schema.TS,
    schema.FLAGS,
    schema.BODY_AT,
    schema.TEXT,
)


@dataclass(frozen=True, slots=True)
class SegmentBytes:
    """A Parquet file. `chunks`: per row group, column -> (offset, length). `sums`: CRC-32 of the
    footer, then of every chunk, group by group."""

    data: bytes
    hash: str
    footer_bytes: int
    chunks: tuple[dict[str, tuple[int, int]], ...]
    sums: tuple[int, ...]


def write_segment(
    rows: Rows,
    order: I64,
    starts: I64,
    tids: I32,
    stream_places: I32,
    metadata: MetadataColumns,
) -> SegmentBytes:
    """Parquet of the rows `order` (indices into `rows`), in that order, with row groups from `starts`.

    `tids` are in segment order; `stream_places` maps rows' streams to the segment's stream table.
    """
    columns = _columns(rows, order, tids, stream_places)
    for name, values in metadata.arrays(order).items():
        columns[name] = as_decimals(values) if pa.types.is_floating(values.type) else values
    if len(rows.raw_rows):
        raw = _sparse(rows.raw_rows, rows.raw, len(rows), order)
        if raw.null_count < len(raw):
            columns[schema.RAW] = raw
    columns[schema.TEXT] = rows.texts().take(pa.array(order))
    used = np.flatnonzero(stream_places >= 0)
    table = sorted(used.tolist(), key=lambda s: int(stream_places[s]))
    text_bytes = int((rows.offsets[order + 1] - rows.offsets[order]).sum())
    return _write(columns, starts, text_bytes, [rows.streams[s] for s in table])


def _columns(rows: Rows, order: I64, tids: I32, stream_places: I32) -> dict[str, Any]:
    def column(name: str, absent: int | None = None) -> Any:
        values = getattr(rows, name)[order]
        mask = None if absent is None else values == absent
        return pa.array(values, mask=mask) if mask is not None and mask.any() else pa.array(values)

    site = rows.site[order]
    return {
        schema.TID: pa.array(tids),
        schema.STREAM: pa.array(stream_places[rows.stream[order]]),
        schema.SEQ: column("seq"),
        schema.TS: column("ts"),
        schema.LEVEL: column("level", NO_LEVEL),
        schema.ITERATION: column("iteration", NO_ITERATION),
        schema.RANK: column("rank", STREAM_RANK),
        schema.GROUP: column("group", NO_HEAD),
        schema.FLAGS: column("flags"),
        schema.BODY_AT: column("body_at"),
        schema.CALL_SITE: _named(site, [entry.site for entry in rows.sites]),
        schema.FUNCTION: _named(site, [entry.function for entry in rows.sites]),
        schema.LOGGER: _named(site, [entry.logger for entry in rows.sites]),
    }


def _named(site: I32, names: Sequence[str | None]) -> Any:
    """Strings by site (0: none), as a dictionary array, so that no string is written twice."""
    distinct = sorted({name for name in names if name is not None})
    place = {name: i for i, name in enumerate(distinct)}
    codes = np.array([-1, *(-1 if name is None else place[name] for name in names)], np.int32)
    code = codes[site]
    assert NO_SITE == 0
    indices = pa.array(code, mask=code < 0)
    return pa.DictionaryArray.from_arrays(indices, pa.array(distinct, pa.string()))


def _sparse(at: I64, values: Any, count: int, order: I64) -> Any:
    """Values of the rows `at`, spread over `order`, null elsewhere."""
    place = np.full(count, -1, np.int64)
    place[at] = np.arange(len(at))
    chosen = place[order]
    return values.take(pa.array(chosen, mask=chosen < 0))


def _write(
    columns: dict[str, Any], starts: I64, text_bytes: int, streams: Sequence[Stream]
) -> SegmentBytes:
    names = list(columns)
    fields = [pa.field(n, columns[n].type, nullable=n not in _REQUIRED) for n in names]
    table = pa.table(list(columns.values()), schema=pa.schema(fields))
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema, **writer_options(columns, text_bytes)) as writer:
        for first, end in pairwise([*starts.tolist(), len(table)]):
            group = table.slice(first, end - first)
            writer.write_table(_with_own_names(group), row_group_size=end - first)
        writer.add_key_value_metadata(
            {
                schema.VERSION_METADATA: str(schema.SEGMENT_VERSION),
                schema.STREAMS_METADATA: streams_json(streams),
            }
        )
    buffer = sink.getvalue()
    data = slim_footer(memoryview(buffer))
    size = int.from_bytes(data[-8:-4], "little") + 8
    chunks = chunks_of(buffer, names)
    return SegmentBytes(data, hash_segment(data), size, chunks, sums_of(data, size, chunks))


def sums_of(
    data: bytes, footer: int, chunks: Iterable[dict[str, tuple[int, int]]]
) -> tuple[int, ...]:
    """CRC-32 of the footer, then of every chunk."""
    view = memoryview(data)
    places = [place for group in chunks for place in group.values()]
    parts = (view[offset : offset + length] for offset, length in places)
    return (zlib.crc32(view[-footer:]), *map(zlib.crc32, parts))


def _with_own_names(group: Any) -> Any:
    """The row group with dictionaries of what it uses: Arrow writes a dictionary as it is given."""
    for i, field in enumerate(group.schema):
        if pa.types.is_dictionary(field.type):
            group = group.set_column(i, field, _own_names(group.column(i).combine_chunks()))
    return group


def _own_names(column: Any) -> Any:
    names = column.dictionary
    codes = column.indices.fill_null(-1).to_numpy()
    used = np.bincount(codes + 1, minlength=len(names) + 1)[1:] > 0
    place = np.append(np.cumsum(used) - 1, -1)[codes].astype(np.int32)
    kept = names.filter(pa.array(used))
    return pa.DictionaryArray.from_arrays(pa.array(place, mask=place < 0), kept)


def chunks_of(buffer: Any, names: Sequence[str]) -> tuple[dict[str, tuple[int, int]], ...]:
    """Where each column chunk of a Parquet file lies: (offset, length) by row group and column."""
    metadata = pq.read_metadata(pa.BufferReader(buffer))
    groups = []
    for group in range(metadata.num_row_groups):
        row_group, places = metadata.row_group(group), {}
        for i, name in enumerate(names):
            chunk = row_group.column(i)
            start = chunk.data_page_offset
            if chunk.dictionary_page_offset is not None:
                start = min(start, chunk.dictionary_page_offset)
            places[name] = (start, chunk.total_compressed_size)
        groups.append(places)
    return tuple(groups)


def streams_json(streams: Sequence[Stream]) -> str:
    """The stream table for readers of the bare segment: a list per field, or one value for all."""
    table: dict[str, Any] = {"count": len(streams)}
    for name in Stream.__slots__:
        values = [getattr(stream, name) for stream in streams]
        table[name] = values[0] if len({*values}) == 1 else values
    return json.dumps(table, separators=(",", ":"))
