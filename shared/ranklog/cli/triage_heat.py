"""Anomalies by rank and time as inline SVG: no script, colours from the page's style."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import tzinfo
from html import escape
from math import log
from typing import Any

from ranklog.cli.times import spread_view

_CELL, _ROW, _LEFT, _FOOT = 14, 13, 96, 34
_TICKS = 5
_SHADE_MIN = 0.35

STYLE = """
svg.heat{width:100%;height:auto;font:10px ui-monospace,monospace}
.heat text{fill:var(--ink)}.heat .faint{fill:var(--dim)}
.heat .row{fill:var(--field)}.heat .err{fill:var(--bad)}.heat .odd{fill:var(--odd)}
.heat .gone{fill:var(--dim);fill-opacity:.3}.heat .who{font-weight:700;fill:var(--bad)}
"""


def render_heat(heat: Mapping[str, Any] | None, zone: tzinfo) -> str:
    """Ranks from top to bottom, time from left to right; nothing where nothing is odd."""
    if heat is None or not heat["rows"]:
        return ""
    rows = heat["rows"]
    columns = len(rows[0]["errors"])
    top = max((count for row in rows for count in row["errors"]), default=0)
    wide = _LEFT + _CELL * columns
    high = _ROW * len(rows) + _FOOT
    parts = [_row(row, y, columns, top) for y, row in enumerate(rows)]
    parts.append(_axis(heat, columns, _ROW * len(rows), zone))
    return (
        f'<h2>Anomalies by rank and time</h2>{_legend(rows, top)}<svg class="heat" role="img" '
        f'aria-label="anomalies by rank and time" viewBox="0 0 {wide} {high}">{"".join(parts)}</svg>'
    )


def _row(row: Mapping[str, Any], y: int, columns: int, top: int) -> str:
    name, at = _name(row["ranks"]), _ROW * y
    who = ' class="who"' if row["suspect"] else ""
    text = f"{name} ◀" if row["suspect"] else name
    found = [
        f'<text{who} x="{_LEFT - 6}" y="{at + 10}" text-anchor="end">{escape(text)}</text>',
        f'<rect class="row" x="{_LEFT}" y="{at}" width="{_CELL * columns}" height="{_ROW - 1}"/>',
    ]
    silent = row["silent_from"]
    if silent is not None:
        wide = _CELL * (columns - silent)
        found.append(
            f'<rect class="gone" x="{_LEFT + _CELL * silent}" y="{at}" width="{wide}" '
            f'height="{_ROW - 1}"><title>{name}: no more lines</title></rect>'
        )
    for x, (errors, odd) in enumerate(zip(row["errors"], row["odd"], strict=True)):
        if errors:
            shade = _SHADE_MIN + (1 - _SHADE_MIN) * log(1 + errors) / log(1 + top)
            found.append(_cell("err", x, at, shade, f"{name}: {errors} errors"))
        elif odd:
            found.append(_cell("odd", x, at, 1, f"{name}: {odd} odd values"))
    return "".join(found)


def _cell(kind: str, x: int, y: int, shade: float, title: str) -> str:
    return (
        f'<rect class="{kind}" x="{_LEFT + _CELL * x}" y="{y}" width="{_CELL - 1}" '
        f'height="{_ROW - 1}" fill-opacity="{shade:.2f}"><title>{title}</title></rect>'
    )


def _name(ranks: Sequence[int]) -> str:
    first, last = ranks
    return f"rank {first}" if first == last else f"ranks {first}-{last}"


def _axis(heat: Mapping[str, Any], columns: int, y: int, zone: tzinfo) -> str:
    low, high = heat["from_ns"], heat["to_ns"]
    times = [low + (high - low) * i // (_TICKS - 1) for i in range(_TICKS)]
    view = spread_view(times, zone)
    found = []
    for at, ts in enumerate(times):
        x = _LEFT + _CELL * columns * at // (_TICKS - 1)
        anchor = "start" if at == 0 else "end" if at == _TICKS - 1 else "middle"
        found.append(f'<rect class="faint" x="{min(x, _LEFT + _CELL * columns - 1)}" y="{y}" ')
        found.append('width="1" height="5"/>')
        found.append(f'<text class="faint" x="{x}" y="{y + 17}" text-anchor="{anchor}">')
        found.append(f"{escape(view(ts))}</text>")
    return "".join(found)


def _legend(rows: Sequence[Mapping[str, Any]], top: int) -> str:
    """What the colours of this picture say, and no more."""
    items = []
    if top:
        counts = sorted({1, *(10**n for n in range(1, 5) if 10**n < top), top})
        swatches = "".join(
            f'<i class="swatch err" style="opacity:'
            f'{_SHADE_MIN + (1 - _SHADE_MIN) * log(1 + n) / log(1 + top):.2f}"></i>{n} '
            for n in counts
        )
        items.append(f"<span>errors: {swatches}</span>")
    if any(any(row["odd"]) for row in rows):
        items.append('<span><i class="swatch odd"></i>not finite, or far slower than peers</span>')
    if any(row["silent_from"] is not None for row in rows):
        items.append('<span><i class="swatch gone"></i>no more lines</span>')
    if any(row["suspect"] for row in rows):
        items.append('<span class="bad">◀ suspect</span>')
    return f'<p class="legend">{"".join(items)}</p>'
