"""`ranklog stacks`: which ranks stand where, by their stack dumps, the odd ones first."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING, Any

from ranklog.answer.render import completeness_json, report_json
from ranklog.cli.arguments import query_text
from ranklog.cli.console import Console
from ranklog.cli.scope import exit_code, restrictions, say_completeness, say_scope
from ranklog.cli.source import open_client
from ranklog.cli.tables import fit, shown_ranks
from ranklog.cli.times import shown_time, zone_of
from ranklog.errors import BadInput

if TYPE_CHECKING:
    from ranklog.client.stacks_answer import StacksAnswer

ODD = 4
_FRAMES_SHOWN = 12


def run(arguments: argparse.Namespace, console: Console) -> int:
    """0 where there are dumps, 1 where there are none (3: not yet); 4 with `--exit-code` for odd ranks."""
    zone = zone_of(arguments.tz)
    if not arguments.run:
        raise BadInput("stacks of which run?", hint="--run NAME")
    found = open_client(arguments).stacks(
        query_text(arguments), thread=arguments.thread, **restrictions(arguments)
    )
    if console.json:
        _print_objects(console, found)
    else:
        _show(console, found, zone)
        say_scope(console, found.report, arguments, zone)
        say_completeness(console, found.completeness, zone)
    if arguments.exit_code and found.odd:
        return ODD
    return exit_code(bool(found.groups), found.completeness)


def _print_objects(console: Console, found: StacksAnswer) -> None:
    for group in found.groups:
        console.object(group)
    around = {
        "report": report_json(found.report),
        "missing": found.missing,
        "completeness": completeness_json(found.completeness),
    }
    console.object(around)


def _show(console: Console, found: StacksAnswer, zone: tzinfo) -> None:
    for group in found.groups:
        words = "1 rank" if group["count"] == 1 else f"{group['count']} ranks"
        head = f"{words} ({shown_ranks(group['ranks'])})"
        colour = "bright red" if group["odd"] else "bold"
        kind = "odd: " if group["odd"] else ""
        waits = ", waiting for others" if group["waits"] else ""
        when = shown_time(group["dumped_ns"], zone)
        console.line(f"{console.paint(kind + head, colour)}{waits}  {when}")
        if group["reason"]:
            console.line("  " + console.safe(group["reason"]))
        for thread in group["threads"]:
            _show_thread(console, thread, alone=len(group["threads"]) == 1)
        console.line()
    if found.missing:
        console.note(f"no dump of rank {shown_ranks(found.missing)}")
    if not found.groups:
        console.note("no stack dumps: docs/debugging.md says how to make them")


def _show_thread(console: Console, thread: Mapping[str, Any], *, alone: bool) -> None:
    if not alone:
        name = thread["name"] or ("main thread" if thread["main"] else "thread")
        console.line(console.paint(f"  {console.safe(name)}", "cyan"))
    frames: Sequence[Mapping[str, Any]] = thread["frames"]
    for frame in frames[:_FRAMES_SHOWN]:
        line = "" if frame["line"] is None else f":{frame['line']}"
        text = console.safe(f"{frame['function']}  {frame['file']}{line}")
        console.line("    " + fit(text, console.width - 4))
    if len(frames) > _FRAMES_SHOWN:
        console.line(f"    … {len(frames) - _FRAMES_SHOWN} more: --json has them")
