"""A piece of a run's manifest on its way: a JSON object, compressed.

A process says what it knows of its run in pieces: what it was given when it starts, what takes time
to find out later, and a reference whenever a file is attached. A piece is never changed.
"""

from __future__ import annotations

import json
import zlib
from typing import Any

from ranklog.errors import Corrupt, TooLarge
from ranklog.limits import MANIFEST_BYTES_MAX, MANIFEST_JSON_BYTES_MAX


def encode_piece(piece: dict[str, Any]) -> bytes:
    """The piece's bytes; equal pieces have equal bytes. Raises TooLarge."""
    text = json.dumps(piece, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    data = zlib.compress(text.encode(), 6)
    if len(data) > MANIFEST_BYTES_MAX or len(text) > MANIFEST_JSON_BYTES_MAX:
        raise TooLarge(
            f"a piece of a manifest has {len(text)} bytes, {len(data)} compressed",
            hint=f"at most {MANIFEST_JSON_BYTES_MAX} and {MANIFEST_BYTES_MAX}",
        )
    return data


def unpack_piece(data: bytes) -> bytes:
    """The JSON text of a piece, checked to be an object. Raises Corrupt; no other."""
    unpacker = zlib.decompressobj()
    try:
        text = unpacker.decompress(data, MANIFEST_JSON_BYTES_MAX)
        piece = json.loads(text)
    except (zlib.error, ValueError, RecursionError) as error:
        raise Corrupt(f"a piece of a manifest is not compressed JSON: {error}") from error
    if not unpacker.eof or unpacker.unused_data or not isinstance(piece, dict):
        raise Corrupt("a piece of a manifest is not one JSON object")
    return text
