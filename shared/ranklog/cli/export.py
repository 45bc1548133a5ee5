"""`ranklog export`: matching lines to files."""

from __future__ import annotations

import argparse

from ranklog.cli.arguments import query_text
from ranklog.cli.console import Console
from ranklog.cli.rows import print_objects, say_around
from ranklog.cli.scope import exit_code, restrictions
from ranklog.cli.source import open_client
from ranklog.cli.tables import print_table
from ranklog.cli.times import zone_of
from ranklog.errors import BadInput


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Write, then list the files that were written."""
    zone = zone_of(arguments.tz)
    if not arguments.out:
        raise BadInput("export to where?", hint="--out DIR")
    listing = open_client(arguments).export(
        query_text(arguments),
        **restrictions(arguments),
        out=arguments.out,
        format=arguments.format,
        pin=arguments.pin,
    )
    if console.json:
        print_objects(console, listing.rows, listing)
    else:
        if listing.rows:
            heads = list(listing.rows[0])
            print_table(console, heads, [[row[h] for h in heads] for row in listing.rows], wide=0)
        say_around(console, listing, arguments, zone)
    return exit_code(bool(listing.rows), listing.completeness)
