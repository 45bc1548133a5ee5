"""`ranklog search`: lines; counts and plans have modules of their own."""

from __future__ import annotations

import argparse
from datetime import tzinfo
from typing import TYPE_CHECKING, Any

from ranklog.answer.render import completeness_json, line_json, report_json, select_fields
from ranklog.cli.arguments import names_of, query_text
from ranklog.cli.console import Console
from ranklog.cli.line_view import LineView
from ranklog.cli.points import show_points
from ranklog.cli.scope import exit_code, restrictions, say_completeness, say_scope
from ranklog.cli.source import open_client
from ranklog.cli.tables import print_table
from ranklog.cli.times import zone_of
from ranklog.client.point_answer import PointPage
from ranklog.errors import BadInput

if TYPE_CHECKING:
    from ranklog.client import Client
    from ranklog.client.answer import Answer


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Print what matches."""
    zone = zone_of(arguments.tz)
    counting = any((arguments.count, arguments.by, arguments.every, arguments.stats))
    if arguments.top is not None and not arguments.by:
        raise BadInput("the largest of which groups?", hint="write --by FIELD --top 10")
    if counting and arguments.pin:
        raise BadInput("a count can't be pinned", hint="pin the lines: leave out --count")
    if counting and (arguments.fields or arguments.context or arguments.cursor or arguments.order):
        raise BadInput(
            "a count has no --fields, --context, --cursor or --order",
            hint="leave out --count, --by, --every and --stats to see lines",
        )
    client = open_client(arguments)
    if counting:
        from ranklog.cli.counts import run_count

        return run_count(client, arguments, console, zone)
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
        from ranklog.cli.explain import show_plan

        show_plan(console, answer, arguments, zone)
        return 0
    fields = names_of(arguments.fields)
    if isinstance(answer, PointPage):
        show_points(console, answer, fields, zone)
        if not console.json:
            _say_cut(console, answer, arguments)
            say_completeness(console, answer.completeness, zone)
        return exit_code(bool(answer.points), answer.completeness)
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
