"""Bytes of a segment and an index of points that were written once, read by docs/storage-format.md alone."""

from __future__ import annotations

import base64
import io
import struct
import zlib
from pathlib import Path
from typing import Any

import msgpack
import pyarrow.parquet as pq
import zstandard

from ranklog.ingest.batch import ingest_batch
from ranklog.layout.index import SegmentIndex
from ranklog.model.record import Record as Delivered
from ranklog.store.memory import MemoryStore
from ranklog.stream.frames import encode_frame
from tests.point_frames import STREAM, T0
from tests.stream.test_point_frames import small_frame

GOLDEN = Path(__file__).parent / "golden"
TABLE = {
    "names": ["g", "loss", "lr", "ü"],
    "dims": ['{"layer":"h.3","shard":2}', "{}"],
    "contexts": ['{"dataset":"c4/en"}'],
    "name": struct.pack("<4I", 0, 1, 2, 3),
    "dim": struct.pack("<4I", 0, 1, 1, 0),
    "rows": struct.pack("<4I", 1, 2, 2, 1),
    "records": 3,
}


def build() -> tuple[bytes, bytes]:
    """Index and segment as this version writes them."""
    store = MemoryStore()
    record = Delivered(encode_frame(small_frame()), T0 + 1_000, "1")
    report = ingest_batch([record], store=store, source="golden", first="1", last="1")
    index = store.get(report.committed[0])
    segment = SegmentIndex.open(index, "k").head.segment
    assert segment is not None
    return index, store.get(segment.key)


def test_an_index_of_points_reads_as_it_did() -> None:
    data = (GOLDEN / "point-v3.idx").read_bytes()
    index = SegmentIndex.open(data, "k")
    index.check()
    head, series = index.head, index.series
    assert (head.kind, head.rows, head.min_ts, head.max_ts) == ("point", 6, T0, T0 + 9)
    [entry] = head.streams
    assert (entry.stream, entry.lines, entry.ranges) == (STREAM, 6, ((5, 8),))
    assert entry.end is not None and entry.end.end_seq == 8
    assert [(group.first_row, group.rows) for group in head.row_groups] == [(0, 3), (3, 6)]
    assert (series.names, series.dims) == (tuple(TABLE["names"]), tuple(TABLE["dims"]))  # type: ignore[arg-type]
    assert (list(series.name), list(series.dim)) == ([0, 1, 2, 3], [0, 1, 1, 0])
    assert (list(series.rows), series.records, series.contexts) == (
        [1, 2, 2, 1],
        3,
        ('{"dataset":"c4/en"}',),
    )
    segment = (GOLDEN / "point-v2.parquet").read_bytes()
    assert index.sums[0] == zlib.crc32(segment[-index.footer_bytes :])
    chunks = [place for group in head.row_groups for place in group.chunks.values()]
    assert index.sums[1:] == tuple(zlib.crc32(segment[at : at + length]) for at, length in chunks)


def test_the_section_of_series_is_laid_out_as_documented() -> None:
    data = (GOLDEN / "point-v3.idx").read_bytes()
    count = struct.unpack_from("<H", data, 6)[0]
    sections = dict(_sections(data, count))
    assert msgpack.unpackb(zstandard.ZstdDecompressor().decompress(sections[b"pnts"])) == TABLE


def _sections(data: bytes, count: int) -> Any:
    for at in range(12, 12 + 16 * count, 16):
        tag, offset, length, crc = struct.unpack_from("<4sIII", data, at)
        assert zlib.crc32(data[offset : offset + length]) == crc
        yield tag, data[offset : offset + length]


def test_a_segment_of_points_reads_by_the_page() -> None:
    data = (GOLDEN / "point-v2.parquet").read_bytes()
    metadata = pq.read_metadata(io.BytesIO(data)).metadata
    assert metadata[b"ranklog.kind"] == b"point" and metadata[b"ranklog.version"] == b"2"
    packed = base64.b64decode(metadata[b"ranklog.series"])
    assert msgpack.unpackb(zstandard.ZstdDecompressor().decompress(packed)) == TABLE
    rows = pq.read_table(io.BytesIO(data)).to_pylist()
    records, points = rows[:3], rows[3:]
    assert all(row["sid"] is None for row in records) and all(row["seq"] is None for row in points)
    found = {}
    for row in points:
        record = records[row["rec"]]
        value = row["value"] if row["digits"] is None else row["digits"] / 10 ** row["scale"]
        found[row["sid"], record["seq"]] = repr(value)
        assert record["rank"] == (-1 if record["seq"] == 7 else None)
    assert found == {
        (0, 7): "None",
        (1, 5): "2.31",
        (1, 6): "2.25",
        (2, 5): "0.0001",
        (2, 6): "None",
        (3, 7): "nan",
    }
    summary = points[0]
    assert (summary["s_count"], summary["s_nan"], "s_std" in summary) == (3, 1, False)
    assert struct.unpack("<2d", summary["s_quantiles"]) == (0.5, 0.25)
    assert struct.unpack("<5d", summary["s_histogram"]) == (-0.5, 0.0, 2.0, 1.0, 2.0)


def test_the_same_records_have_the_same_rows_still() -> None:
    index, segment = build()
    again = pq.read_table(io.BytesIO(segment)).to_pylist()
    assert repr(again) == repr(pq.read_table(GOLDEN / "point-v2.parquet").to_pylist())
    assert (
        SegmentIndex.open(index, "k").series
        == SegmentIndex.open((GOLDEN / "point-v3.idx").read_bytes(), "k").series
    )
