"""Many indexes in one object: what compaction commits in one PUT, and what planners fetch in one GET.

    0   4  magic b"RLIX", as of an index
    4   2  version: 4, which no index has; readers of before say that it is newer
    6   2  0
    8   4  CRC-32 of the stored table
    12  4  length of the stored table
    16     table: zstd of a msgpack list, [keys, lengths]
    …      the indexes, whole, one after the other, as many bytes as the table says

A bundle of level 0 (source `~0` in its name) holds copies: each index keeps its own key, so a reader
that meets it twice takes it once. A bundle of level 1 (source `~1`) holds what one merge became; its
indexes are nowhere else and are called `<key of the bundle>#<number>`. Pure: msgpack and zstandard.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from itertools import accumulate, pairwise

import msgpack
import zstandard

from ranklog.errors import Corrupt
from ranklog.layout.index import MAGIC, SegmentIndex
from ranklog.layout.keys import IndexName
from ranklog.limits import INDEX_SECTION_BYTES_MAX

BUNDLE_VERSION = 4
# Sources in the names of what compaction commits.
BUNDLED, COMPACTED = "~0", "~1"
_PREFIX = struct.Struct("<4sHHII")
_LEVEL = 9
_MARK = "#"


def encode_bundle(members: Sequence[tuple[str, bytes]]) -> bytes:
    """Bytes of a bundle of (key, index), in this order."""
    table = msgpack.packb([[key for key, _ in members], [len(data) for _, data in members]])
    stored = zstandard.ZstdCompressor(level=_LEVEL, write_content_size=True).compress(table)
    prefix = _PREFIX.pack(MAGIC, BUNDLE_VERSION, 0, zlib.crc32(stored), len(stored))
    return b"".join([prefix, stored, *(data for _, data in members)])


def open_indexes(data: bytes, key: str) -> tuple[SegmentIndex, ...]:
    """The indexes of an object: one, or a bundle's. Raises Corrupt, NewerVersion."""
    if data[:4] != MAGIC or _version(data) != BUNDLE_VERSION:
        return (SegmentIndex.open(data, key),)
    if len(data) < _PREFIX.size:
        raise Corrupt(f"damaged bundle of indexes: {key}")
    _, _, nothing, check, size = _PREFIX.unpack_from(data)
    stored = data[_PREFIX.size : _PREFIX.size + size]
    if nothing or len(stored) != size or zlib.crc32(stored) != check:
        raise Corrupt(f"damaged bundle of indexes: {key}")
    names, lengths = _table(stored, key)
    edges = list(accumulate(lengths, initial=_PREFIX.size + size))
    if edges[-1] != len(data):
        raise Corrupt(f"bundle of {len(data)} bytes, its table says {edges[-1]}: {key}")
    parts = zip(names, pairwise(edges), strict=True)
    return tuple(SegmentIndex.open(data[a:b], name) for name, (a, b) in parts)


def _version(data: bytes) -> int:
    return int.from_bytes(data[4:6], "little")


def _table(stored: bytes, key: str) -> tuple[list[str], list[int]]:
    try:
        if zstandard.frame_content_size(stored) > INDEX_SECTION_BYTES_MAX:
            raise Corrupt(f"table of a bundle over {INDEX_SECTION_BYTES_MAX} bytes: {key}")
        names, lengths = msgpack.unpackb(zstandard.ZstdDecompressor().decompress(stored))
        if len(names) != len(lengths) or any(length < 0 for length in lengths):
            raise Corrupt(f"damaged table of a bundle: {key}")
    except (ValueError, TypeError, zstandard.ZstdError, msgpack.UnpackException) as error:
        raise Corrupt(f"damaged table of a bundle: {key}") from error
    return names, lengths


def member_key(bundle: str, number: int) -> str:
    """How an index is called that is in a bundle of level 1 only."""
    return f"{bundle}{_MARK}{number}"


def object_key(key: str) -> str:
    """The object that an index is in, if it has none of its own; else the index's key."""
    return key.partition(_MARK)[0]


def is_compacted(name: IndexName) -> bool:
    """Whether an object holds what several batches said: its name only bounds what each said."""
    return name.source in (BUNDLED, COMPACTED)
