"""What a segment says of itself, without an index: kind, streams, series; and what its name says."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any

import msgpack
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from ranklog.errors import Corrupt
from ranklog.layout import point_schema as ps
from ranklog.layout import schema
from ranklog.layout.index import INDEX_VERSION
from ranklog.layout.keys import decode_name
from ranklog.layout.point_index import NO_SERIES, SeriesTable, series_from_map
from ranklog.model.frame import KIND_LINE, KIND_POINT
from ranklog.model.index import IndexHead, StreamEntry
from ranklog.model.stream import Stream


@dataclass(frozen=True, slots=True)
class BareSegment:
    """A segment as if it had an index; `head` has its streams, without ranges and notes."""

    key: str
    kind: str
    head: IndexHead
    series: SeriesTable


def describe(data: bytes, key: str) -> BareSegment:
    """Raises Corrupt."""
    try:
        metadata = pq.read_metadata(pa.BufferReader(data)).metadata or {}
        kind = metadata.get(ps.KIND_METADATA.encode(), KIND_LINE.encode()).decode()
        streams = _streams(json.loads(metadata[schema.STREAMS_METADATA.encode()]))
        series = NO_SERIES
        if kind == KIND_POINT:
            packed = base64.b64decode(metadata[ps.SERIES_METADATA.encode()])
            unpacked = zstandard.ZstdDecompressor().decompress(packed)
            series = series_from_map(msgpack.unpackb(unpacked, unicode_errors="surrogatepass"))
    except (pa.ArrowException, ValueError, KeyError, TypeError, zstandard.ZstdError) as error:
        raise Corrupt(f"not a segment of ranklog: {key}") from error
    entries = tuple(StreamEntry(one, one.stream_id, 0, 0, None, None, ()) for one in streams)
    head = IndexHead(INDEX_VERSION, kind, None, 0, 0, 0, 0, entries, (), ())
    return BareSegment(key, kind, head, series)


def _streams(table: dict[str, Any]) -> list[Stream]:
    """Inverse of `layout.segment.streams_json`."""
    count = table.pop("count")
    columns = {
        name: values if isinstance(values, list) else [values] * count
        for name, values in table.items()
    }
    return [Stream(**{name: column[i] for name, column in columns.items()}) for i in range(count)]


def names_of(key: str) -> tuple[str, str, str]:
    """(source, first, last) of a segment's key. Raises Corrupt."""
    parts = key.rpartition("/")[2].split(".")
    if len(parts) != 5 or parts[4] != "parquet":
        raise Corrupt(f"not the name of a segment: {key}")
    source, first, last = (decode_name(part) for part in parts[:3])
    return source, first, last
