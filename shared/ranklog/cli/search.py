"""`ranklog search`: lines, counts, plans."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from datetime import tzinfo
from typing import TYPE_CHECKING, Any

from ranklog.answer.render import completeness_json, line_json, report_json, select_fields
from ranklog.cli.arguments import query_text
from ranklog.cli.console import Console
from ranklog.cli.line_view import LineView
from ranklog.cli.scope import exit_code, restrictions, say_completeness, say_scope
from ranklog.cli.source import open_client
from ranklog.cli.tables import print_table
from ranklog.cli.times import shown_time, zone_of
from ranklog.errors import BadInput

if TYPE_CHECKING:
    from ranklog.client import Client
    from ranklog.client.answer import Answer, CountAnswer

_BAR_CELLS = 40


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Print what matches."""
    zone = zone_of(arguments.tz)
    counting = bool(arguments.count or arguments.by or arguments.every)
    if counting and arguments.pin:
        raise BadInput("a count can't be pinned", hint="pin the lines: leave out --count")
    if counting and (arguments.fields or arguments.context or arguments.cursor or arguments.order):
        raise BadInput(
            "a count has no --fields, --context, --cursor or --order",
            hint="leave out --count, --by and --every to see lines",
        )
    client = open_client(arguments)
    if counting:
        return _count(client, arguments, console, zone)
    return _search(client, arguments, console, zone)


def _search(client: Client, arguments: argparse.Namespace, console: Console, zone: tzinfo) -> int:
    answer = client.search(
        query_text(arguments),
        **restrictions(arguments),
        limit=arguments.limit or None,
        order=arguments.order,
        context=arguments.context,
        cursor=arguments.cursor,
        explain=arguments.explain,
        full_scan=arguments.full_scan,
        timeout_s=arguments.timeout,
        pin=arguments.pin or False,
    )
    if answer.explain is not None:
        _show_plan(console, answer)
        return 0
    fields = _names(arguments.fields)
    if console.json:
        for line in answer.lines:
            console.object(select_fields(line_json(line), fields))
        console.object(_trailer(answer))
    else:
        say_scope(console, answer.report, arguments, zone)
        _show_lines(console, answer, fields, zone)
        _say_cut(console, answer, arguments)
        if arguments.pin is True and answer.pin is not None:
            console.note(f"this answer again: ranklog search --pin {answer.pin['id']}")
        say_completeness(console, answer.completeness, zone)
    return exit_code(bool(answer.matches), answer.completeness)


def _trailer(answer: Answer) -> dict[str, Any]:
    shown = {
        "report": report_json(answer.report),
        "completeness": completeness_json(answer.completeness),
        "next": answer.next,
        "truncated": answer.truncated,
    }
    return shown if answer.pin is None else shown | {"pin": answer.pin}


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def _show_lines(console: Console, answer: Answer, fields: list[str], zone: tzinfo) -> None:
    if not fields:
        view = LineView(console, zone, answer.lines)
        for line in answer.lines:
            view.show(line)
        return
    rows = [list(select_fields(line_json(line), fields).values()) for line in answer.lines]
    if len(fields) == 1:
        for [value] in rows:
            console.line("" if value is None else console.safe(str(value)))
    elif rows:
        print_table(console, fields, rows)


def _say_cut(console: Console, answer: Answer, arguments: argparse.Namespace) -> None:
    if not answer.truncated:
        if answer.next:
            console.note(f"time was over; what was not read:\n  --cursor {answer.next}")
        return
    pin = answer.pin or {}
    order, limit = pin.get("order", arguments.order), pin.get("limit", arguments.limit)
    end = "oldest" if order == "oldest" else "newest"
    lines = f"{limit} {end} lines" if limit != 1 else f"{end} line"
    console.note(
        f"cut at the {lines}: --limit 0 shows all" + (", the next:" if answer.next else "")
    )
    if answer.next:
        console.note(f"  --cursor {answer.next}")


def _show_plan(console: Console, answer: Answer | CountAnswer) -> None:
    plan = answer.explain or {}
    if console.json:
        console.object({"explain": plan})
        console.object({"report": report_json(answer.report)})
        return
    console.line(f"query  {plan.get('query')}")
    report = answer.report
    kept = report.segments_listed - report.segments_pruned
    console.line(f"segments    {kept} of {report.segments_listed} might match")
    groups = report.row_groups_total - report.row_groups_pruned
    console.line(f"row groups  {groups} of {report.row_groups_total} might match")
    for segment in plan.get("segments", ()):
        _show_segment(console, segment)


def _show_segment(console: Console, segment: Mapping[str, Any]) -> None:
    """One segment: how much of it might match, and what excluded the rest."""
    groups = segment["row_groups"]
    console.line(f"  {console.safe(str(segment['segment'] or segment['index']))}")
    console.line(f"    {segment['rows']} rows, {groups['kept']} of {groups['total']} row groups")
    for why in segment["excluded_by"]:
        console.line(console.safe(f"    the rest is not read: {why}"))


def _count(client: Client, arguments: argparse.Namespace, console: Console, zone: tzinfo) -> int:
    answer = client.count(
        query_text(arguments),
        **restrictions(arguments),
        by=_names(arguments.by),
        every=arguments.every,
        explain=arguments.explain,
        full_scan=arguments.full_scan,
        timeout_s=arguments.timeout,
    )
    if answer.explain is not None:
        _show_plan(console, answer)
        return 0
    if console.json:
        for group in answer.groups():
            console.object(group)
        trailer = {
            "report": report_json(answer.report),
            "completeness": completeness_json(answer.completeness),
        }
        console.object(trailer)
    else:
        say_scope(console, answer.report, arguments, zone)
        _show_counts(console, answer, zone)
        say_completeness(console, answer.completeness, zone)
    return exit_code(answer.count > 0, answer.completeness)


def _show_counts(console: Console, answer: CountAnswer, zone: tzinfo) -> None:
    groups = answer.groups()
    if not answer.fields:
        console.line(str(answer.count))
        return
    heads = ["time" if name == "bucket_ns" else name for name in answer.fields]
    heads = ["iteration" if name == "bucket_iteration" else name for name in heads]
    most = max((group["count"] for group in groups), default=0)
    bucketed = any(name.startswith("bucket_") for name in answer.fields)
    rows = []
    for group in groups:
        row = [_bucket(name, group.get(name), zone) for name in answer.fields]
        row.append(group["count"])
        if bucketed:
            row.append("█" * -(-_BAR_CELLS * group["count"] // most) if most else "")
        rows.append(row)
    print_table(console, [*heads, "count", *([""] if bucketed else [])], rows)


def _bucket(name: str, value: Any, zone: tzinfo) -> Any:
    return shown_time(value, zone) if name == "bucket_ns" and value is not None else value
