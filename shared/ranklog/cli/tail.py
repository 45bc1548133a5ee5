"""`ranklog tail`: lines as they become visible, until ctrl-c."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from ranklog.cli.arguments import query_text
from ranklog.cli.console import Console
from ranklog.cli.line_view import LineView
from ranklog.cli.scope import FOUND, restrictions
from ranklog.cli.source import open_client
from ranklog.cli.times import zone_of

if TYPE_CHECKING:
    from ranklog.client.tail_items import TailItem


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Print until it is interrupted, or until there were `--limit` lines."""
    zone = zone_of(arguments.tz)
    items = open_client(arguments).tail(query_text(arguments), **restrictions(arguments))
    if not console.json:
        console.note("what is committed from now on; ctrl-c ends it")
    view: LineView | None = None
    shown = 0
    for item in items:
        if console.json:
            console.object(item.to_json())
        elif item.line is None:
            console.line(console.paint(_remark(console, item), "yellow"))
        else:
            view = view or LineView(console, zone, [item.line])
            view.widen(item.line)
            view.show(item.line, "late" if item.late else None)
        sys.stdout.flush()  # somebody waits for it
        shown += item.line is not None
        if arguments.limit and shown >= arguments.limit:
            break
    return FOUND


def _remark(console: Console, item: TailItem) -> str:
    """A hole or a failure as a line between the lines."""
    if item.hole is not None:
        hole = item.hole
        whose = "no rank" if hole.rank is None else f"rank {hole.rank}"
        one = hole.end == hole.first + 1
        lines = f"line {hole.first} has" if one else f"lines {hole.first}-{hole.end - 1} have"
        return console.safe(f"── {whose} of {hole.run_id}: {lines} not arrived ──")
    lost = item.skipped or {}
    return console.safe(f"── can't be read: {lost.get('segment')}: {lost.get('reason')} ──")
