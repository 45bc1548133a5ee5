"""Series as a PNG, drawn by matplotlib: a panel per name, a line per rank and dimension.

matplotlib is an extra (`pip install 'ranklog[plot]'`), imported here alone and without its global state.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ranklog.errors import BadInput

if TYPE_CHECKING:
    from ranklog.client.series_answer import Series, SeriesAnswer

PANELS_MAX = 24
LINES_LABELLED_MAX = 12
_DPI = 100
_EVENTS = {"spike": "#d62728", "drift": "#ff7f0e", "plateau": "#7f7f7f", "nan": "#9467bd"}


def render_picture(answer: SeriesAnswer, width: int = 1000, height: int | None = None) -> bytes:
    """PNG bytes. Raises BadInput without matplotlib, or where there is nothing to draw."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise BadInput(
            "a picture needs matplotlib, which is not installed",
            hint="pip install 'ranklog[plot]'; without it `ranklog plot` draws in the terminal",
        ) from error
    panels = panels_of(answer)
    if not panels:
        raise BadInput("no series to draw", hint="ranklog series shows which there are")
    columns = 1 if len(panels) < 3 else 2 if len(panels) < 9 else 3
    rows = math.ceil(len(panels) / columns)
    high = height or (420 if rows == 1 else 280 * rows)
    figure = Figure(figsize=(width / _DPI, high / _DPI), dpi=_DPI, layout="constrained")
    FigureCanvasAgg(figure)
    for at, (name, series) in enumerate(panels.items()):
        _draw(figure.add_subplot(rows, columns, at + 1), name, series)
    made = io.BytesIO()
    figure.savefig(made, format="png", metadata={"Software": None})
    return made.getvalue()


def render_picture_or_none(answer: SeriesAnswer) -> bytes | None:
    """For notebooks: no picture rather than an error."""
    try:
        return render_picture(answer)
    except BadInput:
        return None


def panels_of(answer: SeriesAnswer) -> dict[str, list[Series]]:
    """Series by name, the first PANELS_MAX names."""
    panels: dict[str, list[Series]] = {}
    for one in answer:
        if one.name in panels or len(panels) < PANELS_MAX:
            panels.setdefault(one.name, []).append(one)
    return panels


def short_labels(series: Sequence[Series]) -> list[str]:
    """What tells the lines of a panel apart: the run only where there are several."""
    several = len({one.run_id for one in series}) > 1
    labels = [one.label.removeprefix(one.name).strip() for one in series]
    if several:
        labels = [f"{one.run_id} {text}".strip() for one, text in zip(series, labels, strict=True)]
    return [text or series[0].name for text in labels]


def axis_of(series: Sequence[Series]) -> tuple[str, list[Any]]:
    """(what the axis is, positions per line): iterations where all lines have them, else seconds."""
    found = [one.iterations for one in series]
    if all(iterations is not None for iterations in found):
        return "iteration", found
    start = min((int(one.ts_ns.min()) for one in series if len(one)), default=0)
    return "seconds", [(one.ts_ns - start) / 1e9 for one in series]


def _draw(axes: Any, name: str, series: Sequence[Series]) -> None:
    """Lines with gaps where there is no number; a tick at the bottom for each NaN and infinity."""
    label, positions = axis_of(series)
    names = short_labels(series)
    for one, at, text in zip(series, positions, names, strict=True):
        finite = np.where(np.isfinite(one.values) & ~one.missing, one.values, np.nan)
        shown = text if len(series) > 1 and len(series) <= LINES_LABELLED_MAX else None
        mark = "." if np.isfinite(finite).sum() < 3 else None
        (line,) = axes.plot(at, finite, linewidth=1.0, label=shown, marker=mark)
        bad = ~np.isfinite(one.values) & ~one.missing
        if bad.any():
            low = np.zeros(int(bad.sum()))
            axes.plot(at[bad], low, "|", color=line.get_color(), transform=axes.get_xaxis_transform(),
                      clip_on=False, markersize=8)  # fmt: skip
        _mark_events(axes, one, label)
    unit = f" [{series[0].unit}]" if series[0].unit else ""
    axes.set_title(f"{name}{unit}", fontsize=10, loc="left")
    axes.set_xlabel(label, fontsize=8)
    axes.tick_params(labelsize=8)
    axes.grid(True, alpha=0.25)
    if 1 < len(series) <= LINES_LABELLED_MAX:
        axes.legend(fontsize=7, loc="best")
    elif len(series) > 1:
        axes.set_title(f"{len(series)} lines", fontsize=8, loc="right")


def _mark_events(axes: Any, one: Series, label: str) -> None:
    if label != "iteration":
        return
    for event in one.events:
        low, high = event["iterations"]
        axes.axvspan(low - 0.5, high + 0.5, color=_EVENTS[event["kind"]], alpha=0.15, linewidth=0)
