"""A heat map as PNG, with the standard library: 8-bit RGB, one filter byte a row, deflated.

Labels name ranks, the ends of the other axis and what colours stand for.

Shapes: `cells` is rows of values 0..1; each becomes a square of some pixels, a dark line between rows
that are large enough.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from ranklog.cli.heat_text import HEIGHT, draw_text, text_width

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_WIDTH_WANTED, _HEIGHT_WANTED = 960, 512
_LABELLED_HEIGHT = 832  # 64 rows, each with its label
_SIDE_MIN, _SIDE_MAX = 2, 32
_GAP_FROM = 6
_PAPER = (250, 250, 248)
_INK = (60, 64, 67)
_TOP, _MARGIN, _SCALE_STEPS = 28, 8, 40
_LEGEND_WIDTH = 260
# Values from 0 to 1: paper, yellow, orange, dark red.
_STOPS = (
    (0.0, (236, 239, 241)),
    (0.15, (253, 216, 53)),
    (0.5, (244, 81, 30)),
    (1.0, (136, 14, 79)),
)


def render_labelled(heat: Mapping[str, Any]) -> bytes:
    """PNG bytes of an outliers' map (`axis`, `rows`, `edges`, `cells`) with its labels."""
    cells = heat["cells"] or [[0.0]]
    names = [f"{a}" if a == b else f"{a}-{b}" for a, b in heat["rows"]] or ["-"]
    wide, high = _side(_WIDTH_WANTED, len(cells[0])), _side(_LABELLED_HEIGHT, len(cells))
    left = max(text_width("rank"), *map(text_width, names)) + 2 * _MARGIN
    picture = _field(cells, wide, high, left)
    every = -(-(HEIGHT + 2) // high)
    for at in range(0, len(cells), every):
        x = left - _MARGIN - text_width(names[at])
        draw_text(picture, x, _TOP + at * high + max(0, (high - HEIGHT) // 2), names[at], _INK)
    draw_text(picture, left - _MARGIN - text_width("rank"), 8, "rank", _INK)
    width = max(_LEGEND_WIDTH, wide * len(cells[0]))
    _draw_axis(picture, heat, left, width, _TOP + high * len(cells) + 6)
    _draw_scale(picture, left)
    filtered = b"".join(b"\0" + bytes(line) for line in picture)
    return encode_png(len(picture[0]) // 3, len(picture), filtered)


def _field(cells: Sequence[Sequence[float]], wide: int, high: int, left: int) -> list[bytearray]:
    """Rows of pixels with the map, and room for labels around it."""
    width = left + max(_LEGEND_WIDTH, wide * len(cells[0])) + 2 * _MARGIN
    blank = bytes(_PAPER) * width
    picture = [bytearray(blank) for _ in range(_TOP + high * len(cells) + HEIGHT + 18)]
    for at, row in enumerate(cells):
        drawn = b"".join(_square(value, wide, high) for value in row)
        for y in range(_TOP + at * high, _TOP + (at + 1) * high - (high >= _GAP_FROM)):
            picture[y][3 * left : 3 * left + len(drawn)] = drawn
    return picture


def _draw_axis(
    picture: list[bytearray], heat: Mapping[str, Any], left: int, width: int, y: int
) -> None:
    """The ends: iterations, or seconds from the first line on."""
    first, last = heat["edges"][0], heat["edges"][-1] if len(heat["edges"]) > 1 else 0
    if heat["axis"] == "time":
        first, last = 0, (last - heat["edges"][0]) // 1_000_000_000
    name = "iteration" if heat["axis"] == "iteration" else "seconds"
    draw_text(picture, left, y, str(first), _INK)
    draw_text(picture, left + width - text_width(str(last)), y, str(last), _INK)
    draw_text(picture, left + (width - text_width(name)) // 2, y, name, _INK)


def _draw_scale(picture: list[bytearray], left: int) -> None:
    """From usual, 0, to odd, 1."""
    draw_text(picture, left, 8, "usual", _INK)
    x = left + text_width("usual") + 4
    for step in range(_SCALE_STEPS):
        colours = bytes(colour(step / (_SCALE_STEPS - 1))) * 4
        for line in picture[8 : 8 + HEIGHT]:
            line[3 * (x + 4 * step) : 3 * (x + 4 * step) + len(colours)] = colours
    draw_text(picture, x + 4 * _SCALE_STEPS + 8, 8, "odd", _INK)


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
