"""A bundle that was written once: every later version reads it as it was meant."""

from __future__ import annotations

import zlib
from pathlib import Path

import msgpack
import zstandard

from ranklog.layout.bundle import open_indexes

GOLDEN = Path(__file__).parent / "golden"
KEYS = ["acme/index/2026-03-01/00/a.idx", "b"]
MEMBERS = [(GOLDEN / name).read_bytes() for name in ("line-v3.idx", "point-v3.idx")]


def test_a_bundle_reads_as_it_did() -> None:
    found = open_indexes((GOLDEN / "bundle-v4.idx").read_bytes(), "k")
    assert [index.key for index in found] == KEYS
    assert [bytes(index.data) for index in found] == MEMBERS


def test_a_bundle_is_laid_out_as_documented() -> None:
    data = (GOLDEN / "bundle-v4.idx").read_bytes()
    size = int.from_bytes(data[12:16], "little")
    table = data[16 : 16 + size]
    assert (data[:4], data[4:8]) == (b"RLIX", b"\x04\x00\x00\x00")
    assert int.from_bytes(data[8:12], "little") == zlib.crc32(table)
    unpacked = msgpack.unpackb(zstandard.ZstdDecompressor().decompress(table))
    assert unpacked == [KEYS, [len(member) for member in MEMBERS]]
    assert data[16 + size :] == b"".join(MEMBERS)
