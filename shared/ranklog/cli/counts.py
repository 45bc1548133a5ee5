"""`ranklog search --count`: groups, histograms, the largest, numbers of metadata."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from datetime import tzinfo
from typing import TYPE_CHECKING, Any

from ranklog.answer.render import completeness_json, report_json
from ranklog.cli.arguments import names_of, query_text
from ranklog.cli.console import Console
from ranklog.cli.explain import show_plan
from ranklog.cli.scope import exit_code, restrictions, say_completeness, say_scope
from ranklog.cli.tables import print_table
from ranklog.cli.times import shown_time

if TYPE_CHECKING:
    from ranklog.client import Client
    from ranklog.client.answer import CountAnswer

_BAR_CELLS = 40
_HEADS = {"bucket_ns": "time", "bucket_iteration": "iteration"}


def run_count(client: Client, arguments: argparse.Namespace, console: Console, zone: tzinfo) -> int:
    """Print how many lines match, by what was asked."""
    answer = client.count(
        query_text(arguments),
        **restrictions(arguments),
        by=names_of(arguments.by),
        every=arguments.every,
        top=arguments.top,
        stats=names_of(arguments.stats),
        explain=arguments.explain,
        full_scan=arguments.full_scan,
        timeout_s=arguments.timeout,
    )
    if answer.explain is not None:
        show_plan(console, answer, arguments, zone)
        return 0
    if console.json:
        for group in answer.groups():
            console.object(group)
        console.object(_trailer(answer))
    else:
        say_scope(console, answer.report, arguments, zone)
        _show(console, answer, zone)
        if answer.approximate is not None:
            console.note(f"quantiles are within {answer.approximate['quantiles']:.0%} of the value")
        say_completeness(console, answer.completeness, zone)
    return exit_code(answer.count > 0, answer.completeness)


def _trailer(answer: CountAnswer) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "report": report_json(answer.report),
        "completeness": completeness_json(answer.completeness),
    }
    if answer.approximate is not None:
        shown |= {"approximate": True, "error": answer.approximate}
    return shown


def _show(console: Console, answer: CountAnswer, zone: tzinfo) -> None:
    if not answer.fields and answer.stats is None:
        console.line(str(answer.count))
        return
    groups = answer.groups()
    bucketed = any(name in _HEADS for name in answer.fields)
    most = max((group["count"] for group in groups), default=0)
    rows = []
    for group in groups:
        row = [_shown(name, group.get(name), zone) for name in answer.fields]
        row += [group["count"], *_numbers(group.get("stats", {}))]
        if bucketed:
            row.append("█" * -(-_BAR_CELLS * group["count"] // most) if most else "")
        rows.append(row)
    heads = [_HEADS.get(name, name) for name in answer.fields]
    keys = answer.stats[0] if answer.stats else {}
    heads += ["count", *(f"{key} {part}" for key in keys for part in _PARTS)]
    print_table(console, [*heads, *([""] if bucketed else [])], rows)


_PARTS = ("n", "min", "p50", "p90", "p99", "max", "mean")


def _numbers(stats: Mapping[str, Any]) -> list[Any]:
    """Cells of the numbers, key by key."""
    cells: list[Any] = []
    for one in stats.values():
        values = [one["min"], *one["quantiles"].values(), one["max"], one["mean"]]
        cells += [one["count"], *map(_number, values)]
    return cells


def _number(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else f"{value:.6g}"


def _shown(name: str, value: Any, zone: tzinfo) -> Any:
    return shown_time(value, zone) if name == "bucket_ns" and value is not None else value
