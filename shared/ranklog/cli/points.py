"""Points of `ranklog search kind:point`: a table for people, objects with `--json`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from typing import Any

from ranklog.answer.render import completeness_json, report_json
from ranklog.cli.console import Console
from ranklog.cli.tables import print_table
from ranklog.cli.times import shown_time
from ranklog.client.point_answer import PointPage, chosen

_SHOWN = ("time", "rank", "iteration", "series", "dims", "value")


def show_points(console: Console, answer: PointPage, fields: Sequence[str], zone: tzinfo) -> None:
    """Print the points, with `fields` only these of them."""
    if console.json:
        for point in answer.points:
            console.object(chosen(point, fields))
        report = {"report": report_json(answer.report)}
        told = {"completeness": completeness_json(answer.completeness)}
        console.object(report | told | {"next": None, "truncated": answer.truncated})
        return
    names = list(fields or _SHOWN)
    rows = [[_cell(point, name, zone) for name in names] for point in answer.points]
    if rows:
        print_table(console, names, rows)


def _cell(point: dict[str, Any], name: str, zone: tzinfo) -> Any:
    if name == "time":
        return shown_time(point["ts_ns"], zone)
    value = chosen(point, (name,))[name]
    if name == "value" and value is None and point["summary"] is not None:
        summary = point["summary"]
        return f"{summary['min']}..{summary['max']} of {summary['count']}"
    if isinstance(value, dict):
        return " ".join(f"{key}={item}" for key, item in value.items())
    return value
