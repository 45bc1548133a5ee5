"""`ranklog delete`: lines that match, or a launch whole, are shown no more."""

from __future__ import annotations

import argparse
import sys
from typing import Any, cast

from ranklog.cli.arguments import query_text
from ranklog.cli.console import Console
from ranklog.cli.scope import exit_code, restrictions, say_completeness, say_scope
from ranklog.cli.source import open_admin_of
from ranklog.cli.tables import print_table
from ranklog.cli.times import zone_of
from ranklog.client.read_back import read_completeness, read_report
from ranklog.client.words import Restrictions
from ranklog.delete.actions import this_user
from ranklog.errors import BadInput
from ranklog.model.tombstone import LAUNCH

_STREAMS_SHOWN_MAX = 40


def run(arguments: argparse.Namespace, console: Console) -> int:
    """0 deleted (or found, with --dry-run), 1 nothing matches, 3 the same, but lines may be missing."""
    zone = zone_of(arguments.tz)
    if not (arguments.yes or arguments.dry_run) and (console.json or not sys.stdin.isatty()):
        raise BadInput("nobody is here to be asked", hint="say --yes, or --dry-run to look first")
    if arguments.query_words and not query_text(arguments).strip():
        raise BadInput("the query says nothing", hint="leave it out to delete the launch whole")
    admin = open_admin_of(arguments)

    def ask(*, dry_run: bool) -> dict[str, Any]:
        return admin.delete(
            query_text(arguments),
            cast(Restrictions, restrictions(arguments)),
            who=arguments.who or this_user(),
            why=arguments.why,
            groups=arguments.groups,
            dry_run=dry_run,
        )

    found = ask(dry_run=not arguments.yes or arguments.dry_run)
    anything = bool(found["lines"] or found["launches"])
    if not console.json:
        _show(found, console)
    if anything and not arguments.yes and not arguments.dry_run and _agreed(found):
        found = ask(dry_run=False)
    _say(found, console, dry=arguments.dry_run)
    completeness = read_completeness(found["completeness"])
    if not console.json:
        say_scope(console, read_report(found["report"]), arguments, zone)
        say_completeness(console, completeness, zone)
    return exit_code(anything, completeness)


def _show(found: dict[str, Any], console: Console) -> None:
    rows = found["deleted"]
    heads = ("run", "attempt", "rank", "stream", "lines")
    shown = [[row["run_id"], *(row[name] for name in heads[1:])] for row in rows]
    if shown:
        print_table(console, heads, shown[:_STREAMS_SHOWN_MAX])
    if len(rows) > _STREAMS_SHOWN_MAX:
        console.line(f"and {len(rows) - _STREAMS_SHOWN_MAX} streams more")


def _agreed(found: dict[str, Any]) -> bool:
    sys.stderr.write(f"delete {_what(found)} for good? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _what(found: dict[str, Any]) -> str:
    rows = "rows (lines and records of points)" if found["kind"] == LAUNCH else "lines"
    launches = ", ".join(found["launches"])
    whole = f"all of {launches}, now " if launches else ""
    return f"{whole}{found['lines']:,} {rows}"


def _say(found: dict[str, Any], console: Console, *, dry: bool) -> None:
    if console.json:
        for row in found["deleted"]:
            console.object(row)
        key = found["tombstone"]
        said = {"lines": found["lines"], "deleted": key is not None, "tombstone": key}
        report = {"report": found["report"] | said}
        console.object(report | {"completeness": found["completeness"]})
    elif found["tombstone"] is not None:
        console.note(f"deleted {_what(found)}")
    elif dry and found["lines"]:
        console.note(f"would delete {_what(found)}")
    else:
        console.note("nothing is deleted")
