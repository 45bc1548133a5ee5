"""What of a line fits into a row of a frame: a piece of its text, as valid UTF-8, and bounded metadata."""

from __future__ import annotations

from typing import Any

from ranklog import limits
from ranklog.model.frame import NO_LF

# A physical line longer than this is several rows; all but the last say NO_LF.
PIECE_BYTES = 256 * limits.KIB
# Metadata of one line beyond this is left out, so that a frame stays under FRAME_BYTES_MAX.
LINE_METADATA_BYTES_MAX = 64 * limits.KIB


def pieces_of(text: bytes) -> list[tuple[bytes, int]]:
    """The text, or pieces of it cut between characters, with the flags each needs."""
    if len(text) <= PIECE_BYTES:
        return [(text, 0)]
    pieces = []
    while len(text) > PIECE_BYTES:
        at = character_start(text, PIECE_BYTES)
        pieces.append((text[:at], NO_LF))
        text = text[at:]
    return [*pieces, (text, 0)]


def character_start(text: bytes, at: int) -> int:
    """The last offset up to `at` that does not lie within a UTF-8 character."""
    for back in range(4):
        if text[at - back] & 0xC0 != 0x80:
            return at - back
    return at


def valid_text(text: bytes) -> tuple[bytes, bytes | None]:
    """Valid UTF-8 as it is; else with U+FFFD in place of what isn't, and the bytes."""
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return text.decode("utf-8", "replace").encode(), text
    return text, None


def bounded(metadata: dict[str, Any] | None) -> dict[str, Any] | None:
    """As much of a line's metadata as fits, first come first."""
    if metadata is None or len(metadata) <= 16:
        return metadata
    kept, size = {}, 0
    for key, value in metadata.items():
        size += 16 + 4 * len(key) + (4 * len(value) if isinstance(value, str) else 8)
        if size > LINE_METADATA_BYTES_MAX:
            break
        kept[key] = value
    return kept
