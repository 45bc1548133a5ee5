"""A section of an index from its stored bytes to values: whatever is wrong with it is Corrupt."""

from __future__ import annotations

import struct
import threading
import zlib
from collections.abc import Callable
from typing import Any, TypeVar

import msgpack
import zstandard

from ranklog.errors import Corrupt
from ranklog.limits import INDEX_SECTION_BYTES_MAX

# What a damaged section's msgpack may raise on its way into our values.
_DAMAGE = (ValueError, TypeError, KeyError, IndexError, AttributeError, struct.error)
_of_thread = threading.local()

T = TypeVar("T")


def sound(data: bytes, length: int, crc: int, tag: bytes, key: str) -> bytes:
    """The same bytes. Raises Corrupt where they are not so many, or others."""
    if len(data) != length or zlib.crc32(data) != crc:
        raise Corrupt(f"damaged section {tag.decode(errors='replace')}: {key}")
    return data


def parsed(data: bytes, tag: bytes, key: str, parse: Callable[[bytes], T]) -> T:
    """What `parse` makes of the section's zstd frame. Raises Corrupt."""

    def unpacked() -> T:
        if zstandard.frame_content_size(data) > INDEX_SECTION_BYTES_MAX:
            raise Corrupt(f"section {tag.decode()} over {INDEX_SECTION_BYTES_MAX} bytes: {key}")
        return parse(_decompressor().decompress(data))

    return told(tag, key, unpacked)


def told(tag: bytes, key: str, parse: Callable[[], T]) -> T:
    """What `parse` gives; what it may raise of damage as Corrupt."""
    try:
        return parse()
    except (*_DAMAGE, zstandard.ZstdError, msgpack.UnpackException) as error:
        raise Corrupt(f"damaged section {tag.decode()}: {key}") from error


def unpack(data: bytes) -> Any:
    """A msgpack value. A path in a stream may hold bytes that are no UTF-8 (lone surrogates)."""
    return msgpack.unpackb(data, unicode_errors="surrogatepass")


def _decompressor() -> zstandard.ZstdDecompressor:
    """The thread's own: making one takes nine times as long as unpacking a small section."""
    found: zstandard.ZstdDecompressor | None = getattr(_of_thread, "decompressor", None)
    if found is None:
        found = _of_thread.decompressor = zstandard.ZstdDecompressor()
    return found
