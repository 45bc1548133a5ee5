"""Bytes that were written once: every later version reads them as they were meant.

The files were made by version 1 of the formats from `test_index.HEAD` and from `SEGMENT_ROWS` below. A
change of the format adds files; it never rewrites these.
"""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

import msgpack
import pyarrow.parquet as pq
import zstandard

from ranklog.layout.index import SegmentIndex
from ranklog.layout.schema import STREAMS_METADATA, VERSION_METADATA
from tests.ingest.frames import T0, Row, stream
from tests.layout.test_index import HEAD, ROWS, SITES, TEMPLATES

GOLDEN = Path(__file__).parent / "golden"
SEGMENT_ROWS = [
    Row("step 1 loss 0.5", ts=T0, stream=stream(0), level=20, iteration=1, metadata={"loss": 0.5}),
    Row(
        "step 1 loss 0.6", ts=T0 + 7, stream=stream(1), level=20, iteration=1, metadata={"ds": "é"}
    ),
    Row("[rank0]: bye a1", ts=T0 + 9, stream=stream(0), body_at=9, rank=-1, raw=b"\xff", flags=64),
]


def test_an_index_of_version_1_reads_as_it_did() -> None:
    index = SegmentIndex.open((GOLDEN / "line-v1.idx").read_bytes(), "k")
    assert index.head == HEAD
    assert (index.templates, index.template_rows, index.sites) == (TEMPLATES, ROWS, SITES)
    assert (index.longest_mixed, index.footer) == (b"\x00\x05\x00", b"PAR1footer")
    assert index.blooms == b"\xff" * 32


def test_an_index_of_version_1_is_laid_out_as_documented() -> None:
    data = (GOLDEN / "line-v1.idx").read_bytes()
    magic, version, count, check = struct.unpack_from("<4sHHI", data)
    assert (magic, version, count) == (b"RLIX", 1, 7)
    assert check == zlib.crc32(data[4:8] + data[12 : 12 + 16 * count])
    sections = {}
    for tag, at, length, crc in struct.iter_unpack("<4sIII", data[12 : 12 + 16 * count]):
        sections[tag] = data[at : at + length]
        assert zlib.crc32(sections[tag]) == crc
    assert list(sections) == [b"head", b"tmpl", b"rows", b"long", b"site", b"foot", b"blom"]
    assert at + length == len(data)
    unpacked = zstandard.ZstdDecompressor().decompress(sections[b"rows"])
    tids, counts = msgpack.unpackb(unpacked)
    assert struct.unpack("<2i2i", tids + counts) == (1, 2, 2, 1)


def test_a_segment_of_version_1_reads_as_it_did() -> None:
    found = pq.read_table(io.BytesIO((GOLDEN / "line-v1.parquet").read_bytes()))
    metadata = {k.decode(): v.decode() for k, v in found.schema.metadata.items()}
    assert metadata[VERSION_METADATA] == "1"
    assert metadata[STREAMS_METADATA].startswith('{"count":2,"tenant":"acme","run":"llama"')
    assert found.column_names == [
        *("tid", "stream", "seq", "ts", "level", "iteration", "rank", "grp", "flags", "body_at"),
        *("call_site", "function", "logger", "str:ds", "float:loss", "raw", "text"),
    ]
    assert [str(field.type) for field in found.schema] == [
        *("int32", "int32", "int64", "int64", "int16", "int64", "int32", "int64", "int16", "int32"),
        *("string", "string", "string", "string", "double", "binary", "string"),
    ]
    rows = found.select(["tid", "stream", "seq", "ts", "level", "rank", "raw", "text"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        (1, 0, 1, T0 + 9, None, -1, b"\xff", "[rank0]: bye a1"),
        (2, 0, 0, T0, 20, None, None, "step 1 loss 0.5"),
        (2, 1, 0, T0 + 7, 20, None, None, "step 1 loss 0.6"),
    ]
