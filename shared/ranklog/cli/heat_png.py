"""A heat map as PNG, with the standard library: 8-bit RGB, one filter byte a row, deflated.

Shapes: `cells` is rows of values 0..1; each becomes a square of some pixels, a dark line between rows
that are large enough.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from itertools import pairwise

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_WIDTH_WANTED, _HEIGHT_WANTED = 960, 512
_SIDE_MIN, _SIDE_MAX = 2, 32
_GAP_FROM = 6
_PAPER = (250, 250, 248)
# Values from 0 to 1: paper, yellow, orange, dark red.
_STOPS = (
    (0.0, (236, 239, 241)),
    (0.15, (253, 216, 53)),
    (0.5, (244, 81, 30)),
    (1.0, (136, 14, 79)),
)


def render_heat(cells: Sequence[Sequence[float]]) -> bytes:
    """PNG bytes; of no cells a picture of one empty one."""
    rows = [list(row) for row in cells if row] or [[0.0]]
    wide = _side(_WIDTH_WANTED, len(rows[0]))
    high = _side(_HEIGHT_WANTED, len(rows))
    lines = []
    for row in rows:
        drawn = b"".join(_square(value, wide, high) for value in row)
        lines += [b"\0" + drawn] * (high - (high >= _GAP_FROM))
        if high >= _GAP_FROM:
            lines.append(b"\0" + bytes(_PAPER) * (wide * len(row)))
    return encode_png(wide * len(rows[0]), len(lines), b"".join(lines))


def _side(wanted: int, count: int) -> int:
    return max(_SIDE_MIN, min(_SIDE_MAX, wanted // count))


def _square(value: float, wide: int, high: int) -> bytes:
    gap = 1 if wide >= _GAP_FROM and high >= _GAP_FROM else 0
    return bytes(colour(value)) * (wide - gap) + bytes(_PAPER) * gap


def colour(value: float) -> tuple[int, int, int]:
    """Red, green, blue of a value 0..1."""
    value = min(1.0, max(0.0, value))
    for (low, dark), (high, light) in pairwise(_STOPS):
        if value <= high:
            part = (value - low) / (high - low)
            red, green, blue = (round(a + (b - a) * part) for a, b in zip(dark, light, strict=True))
            return red, green, blue
    return _STOPS[-1][1]


def encode_png(width: int, height: int, filtered: bytes) -> bytes:
    """A picture of rows that begin with their filter byte (PNG specification, second edition)."""
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(filtered, 9)), (b"IEND", b""))
    return _SIGNATURE + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    sum_ = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", sum_)
