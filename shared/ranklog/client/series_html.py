"""An answer of series in a notebook: the picture, a table of the series, what is missing."""

from __future__ import annotations

import base64
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from ranklog.client.picture import render_picture_or_none

if TYPE_CHECKING:
    from ranklog.client.series_answer import Series, SeriesAnswer

_ROWS_SHOWN = 20


def render_html(answer: SeriesAnswer) -> str:
    """One fragment, nothing to load."""
    parts = []
    picture = render_picture_or_none(answer)
    if picture is not None:
        data = base64.b64encode(picture).decode("ascii")
        parts.append(f'<img alt="series" src="data:image/png;base64,{data}">')
    parts.append(_table(answer))
    parts += [f"<p>{escape(text)}</p>" for text in _remarks(answer)]
    return "<div>" + "".join(parts) + "</div>"


def _table(answer: SeriesAnswer) -> str:
    heads = ("series", "rank", "dimensions", "unit", "points", "last", "min", "max", "events")
    rows = [_row(answer[at]) for at in range(min(len(answer), _ROWS_SHOWN))]
    head = "".join(f"<th>{name}</th>" for name in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _row(one: Series) -> list[Any]:
    dims = " ".join(f"{key}={value}" for key, value in one.dims.items())
    numbers = one.values[np.isfinite(one.values) & ~one.missing]
    ends = [f"{f(numbers):.6g}" if len(numbers) else "" for f in (np.min, np.max)]
    last = "" if not len(one) else "not measured" if one.missing[-1] else f"{one.values[-1]:.6g}"
    kinds = ", ".join(sorted({event["kind"] for event in one.events}))
    rank = "" if one.rank is None else one.rank
    return [one.name, rank, dims, one.unit, one.read, last, *ends, kinds]


def _remarks(answer: SeriesAnswer) -> list[str]:
    found = []
    if len(answer) > _ROWS_SHOWN:
        found.append(f"{len(answer) - _ROWS_SHOWN} more series")
    thinned = answer.downsampled()
    if thinned is not None:
        found.append(
            f"{thinned['shown']} of {thinned['read']} points are shown ({thinned['method']})"
        )
    if answer.completeness.state != "complete":
        found.append(f"not complete: {answer.completeness.state}")
    return [*found, *answer.report.warnings]
