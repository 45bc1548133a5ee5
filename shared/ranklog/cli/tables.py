"""Aligned columns, and texts that fit a width."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from ranklog.cli.console import Console

ELLIPSIS = "…"
# A column that does not fit is not made narrower than this.
_CUT_CELLS_MIN = 20
# More stretches of ranks than this tell people nothing.
_STRETCHES_SHOWN = 8


def cells(text: str) -> int:
    """Columns that a text takes on a terminal: wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(_cell(character) for character in text)


def _cell(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def fit(text: str, width: int) -> str:
    """Cut to a width, the cut marked."""
    if cells(text) <= width:
        return text
    taken, used = [], 0
    for character in text:
        used += _cell(character)
        if used > width - 1:
            break
        taken.append(character)
    return "".join(taken) + ELLIPSIS if width > 0 else ""


def fit_end(text: str, width: int) -> str:
    """Cut to a width from the left: the end of a path tells more than its beginning."""
    if cells(text) <= width:
        return text
    return ELLIPSIS + fit(text[::-1], width)[:-1][::-1] if width > 0 else ""


def pad(text: str, width: int, *, right: bool = False) -> str:
    """Fill up with blanks; `right` puts the text to the right."""
    blanks = " " * max(0, width - cells(text))
    return blanks + text if right else text + blanks


def print_table(
    console: Console,
    heads: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    wide: int = -1,
    keep_end: bool = False,
) -> None:
    """Columns as wide as their widest value; numbers to the right; column `wide` takes the rest.

    None is shown as `-`. On a terminal `wide` is cut, from the left with `keep_end`, and where that is
    not enough the widest of the others.
    """
    texts = [[_shown(console, value) for value in row] for row in rows]
    right = [
        bool(rows) and all(isinstance(row[at], int | float) or row[at] is None for row in rows)
        for at in range(len(heads))
    ]
    widths = [max(cells(text) for text in column) for column in zip(heads, *texts, strict=True)]
    last = wide % len(heads)
    if console.terminal:
        room = console.width - 2 * (len(heads) - 1)
        widths[last] = min(widths[last], max(_CUT_CELLS_MIN, room - sum(widths) + widths[last]))
        widths = _narrowed(widths, room)
    head = "  ".join(pad(t, w, right=r) for t, w, r in zip(heads, widths, right, strict=True))
    console.line(console.paint(head.rstrip(), "bold"))
    for row in texts:
        if console.terminal:
            row = [
                fit_end(t, w) if keep_end and at == last else fit(t, w)
                for at, (t, w) in enumerate(zip(row, widths, strict=True))
            ]
        line = "  ".join(pad(t, w, right=r) for t, w, r in zip(row, widths, right, strict=True))
        console.line(line.rstrip())


def _narrowed(widths: list[int], room: int) -> list[int]:
    """The widest columns cut to one width so that all fit, but not below what still tells something."""
    for most in range(min(max(widths), room), _CUT_CELLS_MIN, -1):
        if sum(min(width, most) for width in widths) <= room:
            return [min(width, most) for width in widths]
    return [min(width, _CUT_CELLS_MIN) for width in widths]


def _shown(console: Console, value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}"
    return console.safe(str(value).replace("\n", " "))


def shown_bytes(count: int) -> str:
    """`512 B`, `1.5 MiB`."""
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def shown_ranks(ranks: Sequence[int]) -> str:
    """`0-7,9`; of many stretches the first, and how many ranks there are."""
    parts: list[str] = []
    start = 0
    for at in range(1, len(ranks) + 1):
        if at == len(ranks) or ranks[at] != ranks[at - 1] + 1:
            first, last = ranks[start], ranks[at - 1]
            parts.append(str(first) if first == last else f"{first}-{last}")
            start = at
    if len(parts) > _STRETCHES_SHOWN:
        parts[_STRETCHES_SHOWN:] = [f"{ELLIPSIS} ({len(ranks)} ranks)"]
    return ",".join(parts) or "-"
