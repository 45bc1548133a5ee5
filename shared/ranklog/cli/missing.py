"""`ranklog missing`: who did not say it."""

from __future__ import annotations

import argparse

from ranklog.answer.negative import NO, STREAM
from ranklog.answer.render import completeness_json, report_json
from ranklog.cli.arguments import query_text
from ranklog.cli.console import Console
from ranklog.cli.scope import (
    FOUND,
    NOTHING,
    NOTHING_YET,
    restrictions,
    say_completeness,
    say_scope,
)
from ranklog.cli.source import open_client
from ranklog.cli.tables import print_table
from ranklog.cli.times import zone_of

_WHERE = ("rank", "host", "channel")


def run(arguments: argparse.Namespace, console: Console) -> int:
    """0: somebody did not say it; 1: everybody did; 3: nobody is known to have not, of some it is unknown."""
    zone, by = zone_of(arguments.tz), arguments.by
    found = open_client(arguments).missing(
        query_text(arguments), by=by, everyone=arguments.all, **restrictions(arguments)
    )
    if console.json:
        for row in found.rows:
            console.object(row)
        report = {"report": report_json(found.report)}
        console.object(report | {"completeness": completeness_json(found.completeness)})
    else:
        names = (by, *_WHERE) if by == STREAM else (by,)
        heads = ("run", *names, "said it", "lines", "why")
        rows = [
            [
                row["run_id"],
                *(row[name] for name in names),
                row["said"],
                row["count"],
                ", ".join(row["why"]) or None,
            ]
            for row in found.rows
        ]
        if rows:
            print_table(console, heads, rows)
        say_scope(console, found.report, arguments, zone)
        say_completeness(console, found.completeness, zone)
    if any(row["said"] == NO for row in found.rows):
        return FOUND
    return NOTHING_YET if any(row["why"] for row in found.rows) else NOTHING
