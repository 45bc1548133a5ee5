"""`ranklog patterns`: what is said, how often, and what an earlier run never said."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from ranklog.cli.arguments import query_text
from ranklog.cli.console import Console
from ranklog.cli.rows import print_objects, ranks_of, say_around
from ranklog.cli.scope import exit_code, restrictions
from ranklog.cli.source import open_client
from ranklog.cli.tables import print_table
from ranklog.cli.times import spread_view, zone_of

_TERMINAL_ROWS = 50
_NEW = {True: "new", False: "", None: "?"}


def run(arguments: argparse.Namespace, console: Console) -> int:
    """List templates, those with most lines first."""
    zone = zone_of(arguments.tz)
    default = _TERMINAL_ROWS if console.terminal and not console.json else 0
    limit = default if arguments.limit is None else arguments.limit
    before = getattr(arguments, "with")
    listing = open_client(arguments).patterns(
        query_text(arguments),
        **restrictions(arguments),
        with_=before,
        limit=limit or None,
        full_scan=arguments.full_scan,
    )
    if console.json:
        print_objects(console, listing.rows, listing)
        return exit_code(bool(listing.rows), listing.completeness)
    view = spread_view([row[at] for row in listing.rows for at in ("first_ns", "last_ns")], zone)
    heads = ["lines", "ranks", "first", "last", *(["new"] if before else []), "template"]
    rows = [
        [
            row["count"],
            ranks_of(row["ranks"]),
            view(row["first_ns"]),
            view(row["last_ns"]),
            *([_NEW[row["new"]]] if before else []),
            _shown(row),
        ]
        for row in listing.rows
    ]
    if rows:
        print_table(console, heads, rows)
    say_around(console, listing, arguments, zone)
    return exit_code(bool(rows), listing.completeness)


def _shown(row: Mapping[str, Any]) -> str:
    """The template; where none is kept, the example says what such a line looks like."""
    if row["template"] is not None:
        return str(row["template"])
    example = row["example"]
    return "(no template)" if example is None else f"(no template) {example['text']}"
