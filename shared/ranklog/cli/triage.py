"""`ranklog triage`: what happened to a run, on one page."""

from __future__ import annotations

import argparse
from pathlib import Path

from ranklog.cli.arguments import query_text
from ranklog.cli.console import Console
from ranklog.cli.scope import restrictions, say_completeness, say_scope
from ranklog.cli.source import at_source, open_client
from ranklog.cli.times import zone_of
from ranklog.cli.triage_page import render_page
from ranklog.cli.triage_view import show_triage
from ranklog.errors import BadInput

SUSPECT = 4


def run(arguments: argparse.Namespace, console: Console) -> int:
    """0 whatever it finds, unless `--exit-code`."""
    zone = zone_of(arguments.tz)
    if not arguments.run:
        raise BadInput("triage of which run?", hint="--run NAME")
    found = open_client(arguments).triage(query_text(arguments), **restrictions(arguments))
    for step in found["next_steps"]:
        step["command"] = step["command"] and at_source(step["command"], arguments)
    if arguments.html:
        page = render_page(found.to_json(), zone)
        _write(Path(arguments.html), page)
        console.note(f"wrote {arguments.html}")
    if console.json:
        console.object(found.to_json())
    else:
        show_triage(console, found.result, zone)
        say_scope(console, found.report, arguments, zone)
        say_completeness(console, found.completeness, zone)
    return SUSPECT if arguments.exit_code and found.suspects else 0


def _write(path: Path, page: str) -> None:
    try:
        path.write_text(page, encoding="utf-8", errors="replace")
    except OSError as error:
        raise BadInput(
            f"can't write {path}: {error.strerror}", hint="name another --html"
        ) from error
