"""What a store holds, as plain values: the reader that tests of ingest compare with."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow.parquet as pq

from ranklog.layout.index import SegmentIndex
from ranklog.layout.schema import parse_metadata_column
from ranklog.store.protocol import Store


def indexes(store: Store, tenant: str = "acme") -> list[SegmentIndex]:
    """All committed indexes of a tenant."""
    return [SegmentIndex.open(store.get(o.key), o.key) for o in store.list(f"{tenant}/index/")]


def table(store: Store, index: SegmentIndex) -> list[dict[str, Any]]:
    """Rows of an index's segment, in its order."""
    if index.head.segment is None:
        return []
    found: list[dict[str, Any]] = pq.read_table(
        io.BytesIO(store.get(index.head.segment.key))
    ).to_pylist()
    return found


def lines(store: Store, tenant: str = "acme") -> dict[tuple[str, int], dict[str, Any]]:
    """Every line by (stream_id, seq), metadata of all columns in one dict. Fails on a double."""
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for index in indexes(store, tenant):
        for row in table(store, index):
            entry = index.head.streams[row["stream"]]
            key = (entry.stream_id, row["seq"])
            assert key not in found
            found[key] = row | {"metadata": dict(_metadata(row)), "entry": entry}
    return found


def _metadata(row: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        if parse_metadata_column(name) and value is not None:
            yield name, float(value) if isinstance(value, Decimal) else value
    if row.get("overflow"):
        yield from json.loads(row["overflow"]).items()
