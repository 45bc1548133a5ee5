"""`ranklog compare`: ranks, or runs, side by side."""

from __future__ import annotations

import argparse

from ranklog.cli.arguments import query_text
from ranklog.cli.compare_view import show_comparison
from ranklog.cli.console import Console
from ranklog.cli.rows import print_objects, say_around
from ranklog.cli.scope import restrictions
from ranklog.cli.source import open_client
from ranklog.cli.times import zone_of
from ranklog.errors import BadInput

DIFFERENT = 4


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Print where they differ; 0 whether they do or not, unless `--exit-code`."""
    zone = zone_of(arguments.tz)
    if not arguments.run:
        raise BadInput("ranks of which run?", hint="--run NAME --ranks 0,7")
    if not arguments.ranks and not getattr(arguments, "with"):
        raise BadInput(
            "which ranks?", hint="--ranks 0,7 for two of this run, --with RUN for another run"
        )
    listing = open_client(arguments).compare(
        query_text(arguments),
        **restrictions(arguments),
        ranks=arguments.ranks,
        with_=getattr(arguments, "with"),
        all_hunks=arguments.all,
        limit=arguments.limit or None,
    )
    if console.json:
        print_objects(console, listing.rows, listing)
    else:
        show_comparison(console, listing.rows, unified=arguments.unified)
        say_around(console, listing, arguments, zone)
    differs = any(row["op"] != "equal" for row in listing.rows)
    return DIFFERENT if arguments.exit_code and differs else 0
