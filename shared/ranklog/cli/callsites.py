"""`ranklog callsites`: who logs how much."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any

from ranklog.cli.arguments import query_text
from ranklog.cli.console import Console
from ranklog.cli.line_view import short_site
from ranklog.cli.rows import print_objects, ranks_of, say_around
from ranklog.cli.scope import exit_code, restrictions
from ranklog.cli.source import open_client
from ranklog.cli.tables import print_table, shown_bytes
from ranklog.cli.times import spread_view, zone_of

_TERMINAL_ROWS = 50


def run(arguments: argparse.Namespace, console: Console) -> int:
    """List call sites and templates, those with most lines first."""
    zone = zone_of(arguments.tz)
    listing = open_client(arguments).callsites(
        query_text(arguments),
        **restrictions(arguments),
        uneven=arguments.uneven,
        full_scan=arguments.full_scan,
    )
    default = _TERMINAL_ROWS if console.terminal and not console.json else 0
    limit = default if arguments.limit is None else arguments.limit
    shown = listing.rows[: limit or None]
    if console.json:
        print_objects(console, shown, listing)
        return exit_code(bool(shown), listing.completeness)
    view = spread_view([site[name] for site in shown for name in ("first_ns", "last_ns")], zone)
    rows = [_row(site, view) for site in shown]
    if rows:
        heads = [
            "lines",
            "bytes",
            "ranks",
            "level",
            "rate",
            "first",
            "last",
            "call site",
            "template",
        ]
        print_table(console, heads, rows)
    if len(shown) < len(listing.rows):
        console.note(f"{len(listing.rows) - len(shown)} more: --limit 0 shows all")
    say_around(console, listing, arguments, zone)
    return exit_code(bool(rows), listing.completeness)


def _row(site: Mapping[str, Any], view: Callable[[int | None], str]) -> list[Any]:
    return [
        site["count"],
        shown_bytes(site["bytes"]),
        ranks_of(site["ranks"]),
        site["level"],
        _rate(site["rate"]),
        view(site["first_ns"]),
        view(site["last_ns"]),
        short_site(site["call_site"]),
        site["template"],
    ]


def _rate(rate: float | None) -> str | None:
    if rate is None:
        return None
    return f"{rate:,.0f}/s" if rate >= 100 else f"{rate:.3g}/s"
