"""Bytes that were written once: every later version reads them as they were meant.

The files were made by versions 1 to 5 of the formats (4 is a bundle) from `test_index.HEAD`, `SEGMENT_ROWS` and
`SEGMENT_ROWS_2`; `line-v2-sums.idx` has the section that version 2 got later. A change of the format
adds files; it never rewrites these.
"""

from __future__ import annotations

import io
import struct
import zlib
from dataclasses import replace
from pathlib import Path

import duckdb
import msgpack
import pyarrow.parquet as pq
import pytest
import zstandard

from ranklog.layout.index import SegmentIndex
from ranklog.layout.schema import STREAMS_METADATA, VERSION_METADATA
from ranklog.model.frame import Drop
from ranklog.model.index import FrameRef
from tests.ingest.frames import T0, Row, stream
from tests.layout.test_index import GRAMS, HEAD, ROWS, SITES, SUMS, TEMPLATES

GOLDEN = Path(__file__).parent / "golden"
SEGMENT_ROWS = [
    Row("step 1 loss 0.5", ts=T0, stream=stream(0), level=20, iteration=1, metadata={"loss": 0.5}),
    Row(
        "step 1 loss 0.6", ts=T0 + 7, stream=stream(1), level=20, iteration=1, metadata={"ds": "é"}
    ),
    Row("[rank0]: bye a1", ts=T0 + 9, stream=stream(0), body_at=9, rank=-1, raw=b"\xff", flags=64),
]
SEGMENT_ROWS_2 = [
    Row(f"loss {i / 4}", ts=T0 + i, stream=stream(0), metadata={"loss": i / 4}) for i in range(60)
]


FRAMES_5 = (
    FrameRef("0a", 1, "ff" * 16, "aa" * 16, "01" * 16, ((HEAD.streams[0].stream_id, 0, 5),)),
    FrameRef(
        "0a",
        2,
        "00" * 16,
        "ff" * 16,
        "02" * 16,
        ((HEAD.streams[1].stream_id, 7, 8), ("cd" * 16, 9, 100)),
        7,
    ),
    FrameRef("import-x", 1, "0b" * 16),
)
DROPS_5 = (
    Drop(12, "quota"),
    Drop(5, "progress", ("0a", 2)),
    Drop(7, "quota", ("0a", 2)),
    Drop(1, "quota", ("0c", 9)),
)
HEAD_5 = replace(
    HEAD, frames=FRAMES_5, streams=(replace(HEAD.streams[0], drops=DROPS_5), *HEAD.streams[1:])
)
SITES_5 = (SITES[0], replace(SITES[1], ranks=((5, 1),)))


@pytest.mark.parametrize("version", [1, 2])
def test_an_index_reads_as_it_did(version: int) -> None:
    index = SegmentIndex.open((GOLDEN / f"line-v{version}.idx").read_bytes(), "k")
    assert index.head == replace(HEAD, version=version)
    assert (index.templates, index.template_rows, index.sites) == (TEMPLATES, ROWS, SITES)
    assert (index.longest_mixed, index.footer_bytes) == (b"\x00\x05\x00", 10)
    assert index.blooms == b"\xff" * 32
    assert index.sums == ()


def test_an_index_with_sums_reads_as_it_did() -> None:
    data = (GOLDEN / "line-v2-sums.idx").read_bytes()
    index = SegmentIndex.open(data, "k")
    assert (index.head, index.sums) == (replace(HEAD, version=2), SUMS)
    tag, at, length, crc = struct.unpack_from("<4sIII", data, 12 + 16 * 7)
    assert (tag, crc) == (b"sums", zlib.crc32(data[at : at + length]))
    assert struct.unpack("<5I", data[at : at + length]) == SUMS


def test_an_index_with_grams_reads_as_it_did() -> None:
    data = (GOLDEN / "line-v3.idx").read_bytes()
    index = SegmentIndex.open(data, "k")
    assert (index.head, index.sums) == (replace(HEAD, version=3), SUMS)
    assert (index.templates, index.template_rows, index.sites) == (TEMPLATES, ROWS, SITES)
    assert (index.longest_mixed, index.footer_bytes) == (b"\x00\x05\x00", 10)
    tag, at, length, crc = struct.unpack_from("<4sIII", data, 12 + 16 * 8)
    section = data[at : at + length]
    assert (tag, crc) == (b"gram", zlib.crc32(section))
    # the first group's filter has two bytes, and its bloom no long tokens; the second has none
    assert section == struct.pack("<2I", 2 << 1 | 1, 0) + GRAMS[0].bits
    assert not index.token_may_hold(0, "4fa1c0") and index.token_may_hold(0, "abc12")
    assert index.token_may_hold(1, "4fa1c0")


def test_an_index_of_version_5_reads_as_it_did() -> None:
    index = SegmentIndex.open((GOLDEN / "line-v5.idx").read_bytes(), "k")
    index.check()
    assert (index.head, index.sums) == (HEAD_5, SUMS)
    assert (index.templates, index.template_rows, index.sites) == (TEMPLATES, ROWS, SITES_5)
    assert (index.longest_mixed, index.footer_bytes) == (b"\x00\x05\x00", 10)
    assert index.longest_variables == (b"", b"\x07", b"")


def test_frames_of_version_5_are_laid_out_as_documented() -> None:
    sections = _sections((GOLDEN / "line-v5.idx").read_bytes())
    head = msgpack.unpackb(zstandard.ZstdDecompressor().decompress(sections[b"head"]))
    assert "frames" not in head
    packed = zstandard.ZstdDecompressor().decompress(sections[b"fram"])
    assert msgpack.unpackb(packed) == [
        3,
        ["import-x"],  # agents that the head does not name: the third
        [1, [0, 0, 2]],
        [1, [1, 2, 1]],  # numbers
        b"\xff" * 16 + bytes(16) + b"\x0b" * 16,  # hashes of headers
        [1, [-2, 0, -1]],  # header before: elsewhere, the first one's, none
        b"\xaa" * 16,
        b"\x01" * 16 + b"\x02" * 16 + bytes(16),  # payloads
        [1, [0, 7, 0]],  # lines dropped
        [1, [1, 2, -1]],  # parts; -1: unknown
        b"\xcd" * 16,  # streams that the head does not name: the third
        [1, [0, 1, 2]],
        [1, [0, 7, 9]],  # first seqs
        [1, [5, 1, 91]],  # rows
    ]


def test_times_and_ranks_of_version_5_are_laid_out_as_documented() -> None:
    sections = _sections((GOLDEN / "line-v5.idx").read_bytes())
    site = msgpack.unpackb(zstandard.ZstdDecompressor().decompress(sections[b"site"]))
    assert (site["site"]["min_ts"], site["site"]["max_ts"]) == ([0, 0], [1, [1, 0]])
    assert site["site"]["ranks"] == [1, [0, 1]]
    # two lists, of ranks 0 and 3 with a line each, and of rank 5 with all lines of its site
    assert site["ranks"] == [
        [2, 1, 1, False, b"\x01\x00"],
        [3, 1, 1, True, b"\x00\x02\x03"],
        [3, 0, 1, False, b"\x01\x01\x00"],
    ]


def test_heads_of_version_5_are_laid_out_as_documented() -> None:
    sections = _sections((GOLDEN / "line-v5.idx").read_bytes())
    assert list(sections) == [b"head", b"tmpl", b"site", b"blom", b"fram", b"sums", b"vars"]
    head = msgpack.unpackb(zstandard.ZstdDecompressor().decompress(sections[b"head"]))
    assert (head["foot"], head["long"]) == (10, b"\x00\x05\x00")
    assert head["runs"] == [[2, 1, 1, True, b"\x00\x01"], [2, 1, 1, False, b"\x01\x00"]]
    # two fences of the first stream: stream, hour, ranges
    assert head["streams"]["fences"] == [2, [0, 0], [1, [3, 4]], [1, [[0, 5], []]]]
    # four drops of the first stream: stream, lines, reason, agents, whose frame (-1: unknown), number
    assert head["streams"]["drops"] == [
        4,
        [0, 0],
        [1, [12, 5, 7, 1]],
        [1, ["quota", "progress", "quota", "quota"]],
        [b"\x0a", b"\x0c"],
        [1, [-1, 0, 0, 1]],
        [1, [0, 2, 2, 9]],
    ]
    # two columns, four bytes before the first
    assert head["groups"]["chunks"] == [[10, 30, 4], [1, 1, 44]]


def _sections(data: bytes) -> dict[bytes, bytes]:
    magic, stored, count, check = struct.unpack_from("<4sHHI", data)
    assert (magic, stored) == (b"RLIX", 5)
    assert check == zlib.crc32(data[4:8] + data[12 : 12 + 16 * count])
    sections = {}
    for tag, at, length, crc in struct.iter_unpack("<4sIII", data[12 : 12 + 16 * count]):
        sections[tag] = data[at : at + length]
        assert zlib.crc32(sections[tag]) == crc
    return sections


def test_sites_of_version_3_are_laid_out_as_documented() -> None:
    data = (GOLDEN / "line-v3.idx").read_bytes()
    tag, at, length, _ = struct.unpack_from("<4sIII", data, 12 + 16 * 4)
    packed = zstandard.ZstdDecompressor().decompress(data[at : at + length])
    assert (tag, msgpack.unpackb(packed)) == (
        b"site",
        {
            "n": 2,
            "site": {
                "call_site": [1, ["a.py:3", None]],
                "function": [1, ["f", None]],
                "logger": [0, None],
                "level": [1, [20, None]],
                "tid": [1, [1, 2]],
                "count": [1, [2, 1]],
                "min_ts": [0, 0],
                "max_ts": [1, [1, 0]],
                "over": [1, [29, 5]],  # 70 bytes of two lines of 6 + 29, 7 bytes of a line of 2 + 5
                "rest": [0, 0],
                "ranks": [0, 0],
            },
            "times": [2, 5, 1, True, b"\x00\x04"],  # 5 and 9
            "ranks": [
                [1, 2, 0, True, b""],  # one list of two,
                [2, 1, 1, True, b"\x00\x02"],  # ranks 0 and 3 as steps 1 and 3 from -1,
                [2, 1, 0, True, b""],  # of a line each
            ],
        },
    )


@pytest.mark.parametrize("version", [1, 2])
def test_an_index_is_laid_out_as_documented(version: int) -> None:
    data = (GOLDEN / f"line-v{version}.idx").read_bytes()
    magic, stored, count, check = struct.unpack_from("<4sHHI", data)
    assert (magic, stored, count) == (b"RLIX", version, 7)
    assert check == zlib.crc32(data[4:8] + data[12 : 12 + 16 * count])
    sections = {}
    for tag, at, length, crc in struct.iter_unpack("<4sIII", data[12 : 12 + 16 * count]):
        sections[tag] = data[at : at + length]
        assert zlib.crc32(sections[tag]) == crc
    assert list(sections) == [b"head", b"tmpl", b"rows", b"long", b"site", b"foot", b"blom"]
    assert at + length == len(data)
    tids, counts = msgpack.unpackb(zstandard.ZstdDecompressor().decompress(sections[b"rows"]))
    if version == 1:
        assert struct.unpack("<2i2i", tids + counts) == (1, 2, 2, 1)
    else:
        assert tids == [2, 1, 1, True, b"\x00\x01"]
        assert counts == [2, 1, 1, False, b"\x01\x00"]


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


def test_a_segment_of_version_2_reads_as_it_did() -> None:
    path = GOLDEN / "line-v2.parquet"
    found = pq.read_table(path)
    assert found.schema.metadata[VERSION_METADATA.encode()] == b"2"
    assert str(found.schema.field("float:loss").type) == "decimal128(18, 2)"
    rows = duckdb.sql(
        f"SELECT seq, ts, text, CAST(\"float:loss\" AS DOUBLE) FROM '{path}' ORDER BY seq"
    ).fetchall()
    assert rows == [(i, T0 + i, f"loss {i / 4}", i / 4) for i in range(60)]
