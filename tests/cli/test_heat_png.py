"""A heat map as a picture that any reader of PNG takes."""

from __future__ import annotations

import struct
import zlib

from ranklog.cli.heat_png import colour, render_heat, render_labelled


def decoded(data: bytes) -> tuple[int, int, list[bytes]]:
    """Width, height, rows of RGB; checksums compared."""
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    at, chunks = 8, {}
    while at < len(data):
        (size,) = struct.unpack(">I", data[at : at + 4])
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size : at + 12 + size]) == (
            zlib.crc32(kind + body),
        )
        chunks[kind] = body
        at += 12 + size
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    width, height, depth, colours, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert (depth, colours, rest) == (8, 2, [0, 0, 0])
    pixels = zlib.decompress(chunks[b"IDAT"])
    stride = 1 + 3 * width
    assert len(pixels) == stride * height
    rows = [pixels[i : i + stride] for i in range(0, len(pixels), stride)]
    assert all(row[0] == 0 for row in rows)
    return width, height, [row[1:] for row in rows]


def test_each_cell_is_a_square_of_its_colour() -> None:
    width, height, rows = decoded(render_heat([[0.0, 1.0], [0.5, 0.0]]))
    assert (width, height) == (64, 64)
    assert rows[0][:3] == bytes(colour(0.0))
    assert rows[0][32 * 3 : 32 * 3 + 3] == bytes(colour(1.0))
    assert rows[32][:3] == bytes(colour(0.5))


def test_many_cells_are_small_and_none_is_one_empty_square() -> None:
    width, height, _ = decoded(render_heat([[0.1] * 600] * 512))
    assert (width, height) == (1200, 1024)
    assert decoded(render_heat([]))[:2] == (32, 32)


def test_values_outside_are_those_at_the_edge() -> None:
    assert colour(-1) == colour(0)
    assert colour(7) == colour(1) == (136, 14, 79)


def test_labels_stand_around_the_map() -> None:
    heat = {
        "axis": "iteration",
        "rows": [(0, 0), (1, 1)],
        "edges": [5, 6, 7],
        "cells": [[0.0, 1.0], [0.5, 0.0]],
    }
    width, _, rows = decoded(render_labelled(heat))
    used = {row[at : at + 3] for row in rows for at in range(0, 3 * width, 3)}
    assert {bytes(c) for c in ((60, 64, 67), colour(0.0), colour(0.5), colour(1.0))} <= used
    wider = decoded(render_labelled({**heat, "rows": [(0, 4095), (4096, 8191)]}))
    assert wider[0] > width
    assert decoded(render_labelled({**heat, "axis": "time"}))[2] != rows


def test_a_map_of_nothing_is_a_picture() -> None:
    width, height, _ = decoded(
        render_labelled({"axis": "time", "rows": [], "edges": [0, 1], "cells": []})
    )
    assert width > 0 and height > 0
