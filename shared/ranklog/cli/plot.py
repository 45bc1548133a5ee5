"""`ranklog plot`: series as a picture, in the terminal or in a file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ranklog.cli.console import Console
from ranklog.cli.plot_view import curves_of, show_chart
from ranklog.cli.scope import exit_code, say_completeness, say_scope
from ranklog.cli.series import ask, trailer
from ranklog.cli.source import open_client
from ranklog.cli.times import zone_of
from ranklog.errors import BadInput

if TYPE_CHECKING:
    from ranklog.client.series_answer import SeriesAnswer

_ROWS_OF_ONE, _ROWS_OF_MANY = 16, 8


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Draw what matches."""
    zone = zone_of(arguments.tz)
    answer = ask(open_client(arguments), arguments)
    if arguments.out:
        _write(Path(arguments.out), answer)
        console.note(f"wrote {arguments.out}: {len(answer)} series")
    if console.json:
        console.object(trailer(answer) | {"out": arguments.out, "series": len(answer)})
        return exit_code(len(answer) > 0, answer.completeness)
    say_scope(console, answer.report, arguments, zone)
    if not arguments.out:
        _show(console, answer)
    say_completeness(console, answer.completeness, zone)
    return exit_code(len(answer) > 0, answer.completeness)


def _show(console: Console, answer: SeriesAnswer) -> None:
    from ranklog.client.picture import axis_of, panels_of, short_labels

    panels = panels_of(answer)
    rows = _ROWS_OF_ONE if len(panels) == 1 else _ROWS_OF_MANY
    for at, (name, series) in enumerate(panels.items()):
        if at:
            console.line()
        axis, places = axis_of(series)
        panel = {
            "labels": short_labels(series),
            "x": places,
            "y": [one.values for one in series],
            "missing": [one.missing for one in series],
        }
        unit = f" [{series[0].unit}]" if series[0].unit else ""
        alone = "" if len(series) > 1 else f"  {series[0].label.removeprefix(name).strip()}"
        show_chart(console, f"{name}{unit}{alone}", axis, curves_of(panel), rows)


def _write(path: Path, answer: SeriesAnswer) -> None:
    from ranklog.client.picture import render_picture

    if path.suffix.lower() != ".png":
        raise BadInput(f"{path} is no PNG", hint="--out plot.png")
    picture = render_picture(answer)
    try:
        path.write_bytes(picture)
    except OSError as error:
        raise BadInput(
            f"can't write {path}: {error.strerror}", hint="name another --out"
        ) from error
