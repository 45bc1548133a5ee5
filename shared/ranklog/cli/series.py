"""`ranklog series`: points as rows, and what happens in their series."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from datetime import tzinfo
from typing import TYPE_CHECKING, Any

from ranklog.cli.arguments import names_of, query_text
from ranklog.cli.console import Console
from ranklog.cli.scope import exit_code, restrictions, say_completeness, say_scope
from ranklog.cli.source import open_client
from ranklog.cli.tables import print_table, shown_ranks
from ranklog.cli.times import shown_time, zone_of

if TYPE_CHECKING:
    from ranklog.client import Client
    from ranklog.client.series_answer import Series, SeriesAnswer


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Print what matches."""
    zone = zone_of(arguments.tz)
    answer = ask(open_client(arguments), arguments)
    if console.json:
        for row in answer.rows():
            console.object(row)
        console.object(trailer(answer))
    else:
        say_scope(console, answer.report, arguments, zone)
        if arguments.detect:
            _show_events(console, answer, zone)
        elif arguments.list:
            _show_series(console, answer)
        else:
            _show_points(console, answer, zone)
        say_completeness(console, answer.completeness, zone)
    return exit_code(len(answer) > 0, answer.completeness)


def ask(client: Client, arguments: argparse.Namespace) -> SeriesAnswer:
    """What the options of `series` and `plot` ask."""
    return client.series(
        query_text(arguments),
        **restrictions(arguments),
        by=names_of(arguments.by) if arguments.by is not None else None,
        every=arguments.every,
        aggregate=arguments.aggregate,
        max_points=arguments.max_points,
        stat=arguments.stat,
        detect=arguments.detect or False,
        superseded=arguments.superseded,
        timeout_s=arguments.timeout,
    )


def trailer(answer: SeriesAnswer) -> dict[str, Any]:
    """The last object of --json."""
    return answer.trailer()


def _show_points(console: Console, answer: SeriesAnswer, zone: tzinfo) -> None:
    rows = list(answer.rows())
    if not rows:
        return
    keys = sorted({key for row in rows for key in row["dims"]})
    several = len({row["run_id"] for row in rows}) > 1
    heads = ["time", *(["run"] if several else []), "rank", "iteration", "series", *keys, "value"]
    counts = [name for name in ("count", "nan", "inf", "not_measured") if name in rows[0]]
    cells = []
    for row in rows:
        line: list[Any] = [shown_time(row["ts_ns"], zone)]
        line += [row["run_id"]] if several else []
        line += [row["rank"], row["iteration"], row["series"]]
        line += [row["dims"].get(key) for key in keys]
        cells.append([*line, _value(row), *(row[name] for name in counts)])
    print_table(console, [*heads, *counts], cells, wide=heads.index("series"))


def _value(row: Mapping[str, Any]) -> Any:
    value = row["value"]
    if value is None:
        return "not measured"
    return value if isinstance(value, str) else f"{value:.6g}"


def _show_series(console: Console, answer: SeriesAnswer) -> None:
    """One row per name and dimensions, ranks together, without points."""
    rows: dict[tuple[str, str], list[Series]] = {}
    for one in answer:
        dims = " ".join(f"{key}={value}" for key, value in one.dims.items())
        rows.setdefault((one.name, dims), []).append(one)
    cells = []
    for (name, dims), found in rows.items():
        numbers = [value for one in found for value in one.numbers]
        ends = [min(numbers), max(numbers), numbers[-1]] if numbers else [None] * 3
        ranks = shown_ranks(sorted({one.rank for one in found if one.rank is not None}))
        written = sorted({text for one in found for text in one.written if text != name})
        points = sum(one.read for one in found)
        cells.append([name, ranks, dims, found[0].unit, points, *ends, ",".join(written)])
    if cells:
        heads = ["series", "ranks", "dimensions", "unit", "points", "min", "max", "last"]
        print_table(console, [*heads, "written as"], cells, wide=2)


def _show_events(console: Console, answer: SeriesAnswer, zone: tzinfo) -> None:
    events = answer.trailer()["events"]
    if not events:
        console.line(f"nothing found in {len(answer)} series")
        return
    cells = [
        [
            event["kind"],
            event["series"],
            event["rank"],
            " ".join(f"{key}={value}" for key, value in event["dims"].items()),
            _span(event, zone),
            event["value"],
            event["baseline"],
            event["score"],
        ]
        for event in events
    ]
    heads = ["kind", "series", "rank", "dimensions", "where", "value", "baseline", "sigmas"]
    print_table(console, heads, cells, wide=3)


def _span(event: Mapping[str, Any], zone: tzinfo) -> str:
    first, last = event["first_iteration"], event["last_iteration"]
    if first is None:
        return shown_time(event["first_ns"], zone)
    return str(first) if first == last else f"{first}..{last}"
