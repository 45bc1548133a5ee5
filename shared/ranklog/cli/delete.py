"""`ranklog delete`: lines that match, or a launch whole, are shown no more."""

from __future__ import annotations

import argparse
import sys
from typing import cast

from ranklog.answer.render import completeness_json, report_json
from ranklog.cli.arguments import query_text
from ranklog.cli.console import Console
from ranklog.cli.scope import exit_code, restrictions, say_completeness, say_scope
from ranklog.cli.source import open_store_of
from ranklog.cli.tables import print_table
from ranklog.cli.times import zone_of
from ranklog.client.deletion import Deletion, delete, find_deletion
from ranklog.client.reader import local_reader
from ranklog.client.words import Restrictions, read_query
from ranklog.delete.actions import this_user
from ranklog.errors import BadInput
from ranklog.model.tombstone import LAUNCH

_STREAMS_SHOWN_MAX = 40


def run(arguments: argparse.Namespace, console: Console) -> int:
    """0 deleted (or found, with --dry-run), 1 nothing matches, 3 the same, but lines may be missing."""
    zone = zone_of(arguments.tz)
    store, tenant = open_store_of(arguments, create=False)
    if not (arguments.yes or arguments.dry_run) and (console.json or not sys.stdin.isatty()):
        raise BadInput("nobody is here to be asked", hint="say --yes, or --dry-run to look first")
    reader = local_reader(store, tenant)
    given = cast(Restrictions, restrictions(arguments))
    query = read_query(query_text(arguments), given, now_ns=reader.now_ns())
    who = arguments.who or this_user()
    found = find_deletion(reader, query, who=who, why=arguments.why, groups=arguments.groups)
    anything = bool(found.lines or found.tombstone.launches)
    if not console.json:
        _show(found, console)
    if anything and not arguments.dry_run and (arguments.yes or _agreed(found)):
        found = delete(reader, found)
    _say(found, console, dry=arguments.dry_run)
    if not console.json:
        say_scope(console, found.report, arguments, zone)
        say_completeness(console, found.completeness, zone)
    return exit_code(anything, found.completeness)


def _show(found: Deletion, console: Console) -> None:
    rows = found.rows()
    heads = ("run", "attempt", "rank", "stream", "lines")
    shown = [[row["run_id"], *(row[name] for name in heads[1:])] for row in rows]
    if shown:
        print_table(console, heads, shown[:_STREAMS_SHOWN_MAX])
    if len(rows) > _STREAMS_SHOWN_MAX:
        console.line(f"and {len(rows) - _STREAMS_SHOWN_MAX} streams more")


def _agreed(found: Deletion) -> bool:
    sys.stderr.write(f"delete {_what(found)} for good? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _what(found: Deletion) -> str:
    rows = "rows (lines and records of points)" if found.tombstone.kind == LAUNCH else "lines"
    launches = ", ".join(f"{run}@{launch}" for run, launch in found.tombstone.launches)
    whole = f"all of {launches}, now " if launches else ""
    return f"{whole}{found.lines:,} {rows}"


def _say(found: Deletion, console: Console, *, dry: bool) -> None:
    if console.json:
        for row in found.rows():
            console.object(row)
        report = report_json(found.report)
        report |= {"lines": found.lines, "deleted": found.key is not None, "tombstone": found.key}
        console.object({"report": report, "completeness": completeness_json(found.completeness)})
    elif found.key is not None:
        console.note(f"deleted {_what(found)}")
    elif dry and found.lines:
        console.note(f"would delete {_what(found)}")
    else:
        console.note("nothing is deleted")
