"""`ranklog runs`: what is there."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from datetime import tzinfo
from typing import Any

from ranklog.cli.console import Console
from ranklog.cli.rows import print_objects, ranks_of, say_around, state_of
from ranklog.cli.scope import exit_code, restrictions
from ranklog.cli.source import open_client
from ranklog.cli.tables import print_table, shown_bytes
from ranklog.cli.times import shown_span, shown_time, zone_of


def run(arguments: argparse.Namespace, console: Console) -> int:
    """List launches of runs, newest first."""
    zone = zone_of(arguments.tz)
    listing = open_client(arguments).runs(**restrictions(arguments))
    if console.json:
        print_objects(console, listing.rows, listing)
        return exit_code(bool(listing.rows), listing.completeness)
    heads = [
        "run",
        "state",
        "attempts",
        "ranks",
        "first",
        "took",
        "iteration",
        "lines",
        "bytes",
        "complete",
    ]
    rows = [_row(launch, zone) for launch in listing.rows]
    if rows:
        print_table(console, heads, rows, wide=0)
    say_around(console, listing, arguments, zone)
    return exit_code(bool(rows), listing.completeness)


def _row(launch: Mapping[str, Any], zone: tzinfo) -> list[Any]:
    return [
        launch["run_id"],
        launch["state"],
        len(launch["attempts"]),
        ranks_of(launch["ranks"]),
        shown_time(launch["first_ns"], zone),
        _took(launch["first_ns"], launch["last_ns"]),
        launch["last_iteration"],
        launch["lines"],
        shown_bytes(launch["bytes"] or 0),
        state_of(launch["completeness"]),
    ]


def _took(first_ns: int | None, last_ns: int | None) -> str | None:
    return None if first_ns is None or last_ns is None else shown_span(last_ns - first_ns)
