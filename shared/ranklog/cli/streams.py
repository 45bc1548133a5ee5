"""`ranklog streams`: the streams of a run."""

from __future__ import annotations

import argparse

from ranklog.cli.console import Console
from ranklog.cli.rows import print_objects, say_around, state_of
from ranklog.cli.scope import exit_code, restrictions
from ranklog.cli.source import open_client
from ranklog.cli.tables import print_table, shown_bytes
from ranklog.cli.times import shown_time, zone_of
from ranklog.errors import BadInput


def run(arguments: argparse.Namespace, console: Console) -> int:
    """List streams by rank and channel."""
    zone = zone_of(arguments.tz)
    if not arguments.run:
        raise BadInput("streams of which run?", hint="--run NAME; `ranklog runs` lists them")
    listing = open_client(arguments).streams(**restrictions(arguments))
    if console.json:
        print_objects(console, listing.rows, listing)
        return exit_code(bool(listing.rows), listing.completeness)
    heads = ["rank", "attempt", "host", "channel", "lines", "bytes", "first", "last", "complete"]
    rows = [
        [
            row["rank"],
            row["attempt"],
            row["host"],
            row["channel"],
            row["lines"],
            shown_bytes(row["bytes"] or 0),
            shown_time(row["first_ns"], zone),
            shown_time(row["last_ns"], zone),
            state_of(row["completeness"]),
        ]
        for row in listing.rows
    ]
    if rows:
        print_table(console, heads, rows, wide=heads.index("channel"), keep_end=True)
    say_around(console, listing, arguments, zone)
    return exit_code(bool(rows), listing.completeness)
