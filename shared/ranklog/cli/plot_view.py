"""Series drawn with braille characters: two dots across and four down in each cell.

Shapes: a chart is `rows` lines of `columns` cells; dots are (2 * columns) x (4 * rows).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from ranklog.cli.console import Console
from ranklog.cli.tables import fit, pad

_BASE = 0x2800
# Bit of the dot at (x, y) in a cell, y downwards.
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_COLOURS = ("cyan", "yellow", "green", "magenta", "blue", "red")
_NO_NUMBER = "×"
_LABELLED_MAX = 12


@dataclass(frozen=True, slots=True)
class Curve:
    """A line of a chart. `x` and `y` alike long; y None: not measured, NaN and infinities as they are."""

    label: str
    x: Sequence[float]
    y: Sequence[float | None]


class Canvas:
    """Dots and who set them last; later curves lie above."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self._bits = [[0] * columns for _ in range(rows)]
        self._owner: list[list[int | None]] = [[None] * columns for _ in range(rows)]

    def dot(self, x: int, y: int, owner: int) -> None:
        """Set one, counted from the upper left."""
        row, column = y // 4, x // 2
        if 0 <= row < self.rows and 0 <= column < self.columns:
            self._bits[row][column] |= _DOTS[y % 4][x % 2]
            self._owner[row][column] = owner

    def line(self, x0: int, y0: int, x1: int, y1: int, owner: int) -> None:
        """From one dot to another."""
        steps = max(abs(x1 - x0), abs(y1 - y0), 1)
        for step in range(steps + 1):
            self.dot(
                x0 + round((x1 - x0) * step / steps), y0 + round((y1 - y0) * step / steps), owner
            )

    def cells(self, row: int) -> list[tuple[str, int | None]]:
        """Characters of a row with who drew them."""
        pairs = zip(self._bits[row], self._owner[row], strict=True)
        return [(chr(_BASE + bits) if bits else " ", owner) for bits, owner in pairs]


def show_chart(
    console: Console, title: str, axis: str, curves: Sequence[Curve], rows: int = 12
) -> None:
    """One chart with its axes and, of several curves, a legend."""
    numbers = [y for c in curves for y in c.y if y is not None and math.isfinite(y)]
    places = [x for c in curves for x in c.x]
    console.line(console.paint(console.safe(title.rstrip()), "bold"))
    if not numbers:
        console.line(f"  no number among {len(places)} points")
        return
    low, high = _bounds(numbers)
    left, right = min(places), max(places)
    labels = _labels(low, high, rows)
    room = max(map(len, labels.values()))
    canvas = Canvas(max(10, min(console.width, 120) - room - 2), rows)
    marks = [_draw(canvas, curve, at, (left, right, low, high)) for at, curve in enumerate(curves)]
    for row in range(rows):
        body = _painted(console, canvas.cells(row))
        edge = "┤" if row in labels else "│"
        console.line(f"{pad(labels.get(row, ''), room, right=True)} {edge}{body}".rstrip())
    _show_axis(console, canvas, room, (left, right), axis, set().union(*marks))
    if len(curves) > 1:
        _show_legend(console, curves)


def _bounds(numbers: Sequence[float]) -> tuple[float, float]:
    low, high = min(numbers), max(numbers)
    if low == high:
        margin = abs(low) * 0.05 or 1.0
        return low - margin, high + margin
    return low, high


def _labels(low: float, high: float, rows: int) -> dict[int, str]:
    """Row -> number at the axis: the ends and what lies between."""
    marked = sorted({0, rows - 1, (rows - 1) // 2})
    return {row: f"{high - (high - low) * row / max(1, rows - 1):.5g}" for row in marked}


def _draw(
    canvas: Canvas, curve: Curve, owner: int, box: tuple[float, float, float, float]
) -> set[int]:
    """Columns at which the curve is no number."""
    left, right, low, high = box
    across, down = 2 * canvas.columns - 1, 4 * canvas.rows - 1
    before: tuple[int, int] | None = None
    bad = set()
    for x, y in zip(curve.x, curve.y, strict=True):
        at = round((x - left) / (right - left) * across) if right > left else across // 2
        if y is None or not math.isfinite(y):
            before = None
            if y is not None:
                bad.add(at // 2)
            continue
        place = (at, down - round((y - low) / (high - low) * down))
        canvas.line(*(before or place), *place, owner)
        before = place
    return bad


def _painted(console: Console, cells: Sequence[tuple[str, int | None]]) -> str:
    """Characters in the colours of their curves, a run of one colour at once."""
    parts = []
    for owner, run in groupby(cells, key=lambda cell: cell[1]):
        colour = None if owner is None else _COLOURS[owner % len(_COLOURS)]
        parts.append(console.paint("".join(cell for cell, _ in run), colour))
    return "".join(parts)


def _show_axis(
    console: Console,
    canvas: Canvas,
    room: int,
    ends: tuple[float, float],
    axis: str,
    bad: set[int],
) -> None:
    line = "".join(_NO_NUMBER if at in bad else "─" for at in range(canvas.columns))
    console.line(f"{'':{room}} └{line}")
    first, last = (f"{end:.10g}" for end in ends)
    middle = axis + (f", {_NO_NUMBER} NaN or infinite" if bad else "")
    space = max(1, canvas.columns - len(first) - len(last))
    console.line(f"{'':{room}}  {first}{middle:^{space}}{last}")


def _show_legend(console: Console, curves: Sequence[Curve]) -> None:
    for at, curve in enumerate(curves[:_LABELLED_MAX]):
        sign = console.paint("⣿", _COLOURS[at % len(_COLOURS)])
        console.line(f"  {sign} {fit(console.safe(curve.label), console.width - 4)}")
    if len(curves) > _LABELLED_MAX:
        console.line(f"  … {len(curves) - _LABELLED_MAX} more")


def curves_of(panel: Mapping[str, Any]) -> list[Curve]:
    """From labels and columns of numpy."""
    return [
        Curve(
            label,
            at.tolist(),
            [None if gone else y for y, gone in zip(y.tolist(), missing.tolist(), strict=True)],
        )
        for label, at, y, missing in zip(
            panel["labels"], panel["x"], panel["y"], panel["missing"], strict=True
        )
    ]
