"""Numbers and tables of the page, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

Figures = dict[str, Any]


def number(value: float | None) -> str:
    """Three digits, thousands apart; a dash where there is none."""
    if value is None or value != value:
        return "–"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}".rstrip("0").rstrip(".")
    return f"{value:.3g}"


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Markdown; the first column is words, the others numbers."""
    lines = ["| " + " | ".join(head) + " |", "|---|" + "--:|" * (len(head) - 1)]
    for row in rows:
        cells = (cell if isinstance(cell, str) else number(cell) for cell in row)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"
