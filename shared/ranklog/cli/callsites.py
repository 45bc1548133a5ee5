"""`ranklog callsites`: who logs how much."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
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
_CELLS_MAX = 24
_BLOCKS = " ▁▂▃▄▅▆▇█"


def run(arguments: argparse.Namespace, console: Console) -> int:
    """List call sites and templates, those with most lines first."""
    zone = zone_of(arguments.tz)
    listing = open_client(arguments).callsites(
        query_text(arguments),
        **restrictions(arguments),
        uneven=arguments.uneven,
        every=arguments.every,
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
    heads = ["lines", "bytes", "ranks", "level", "rate", "first", "last", "call site", "template"]
    if arguments.every:
        heads.insert(5, f"per {arguments.every}")
        lines = bucket_lines([site["buckets"] for site in shown])
        rows = [[*row[:5], drawn, *row[5:]] for row, drawn in zip(rows, lines, strict=True)]
    if rows:
        print_table(console, heads, rows)
    if len(shown) < len(listing.rows):
        console.note(f"{len(listing.rows) - len(shown)} more: --limit 0 shows all")
    say_around(console, listing, arguments, zone)
    return exit_code(bool(rows), listing.completeness)


def bucket_lines(rows: Sequence[Sequence[Mapping[str, int]]]) -> list[str]:
    """Each row's buckets as a line of blocks over the same axis, as high as its own largest."""
    starts = sorted({_start(bucket) for row in rows for bucket in row})
    if not starts:
        return [""] * len(rows)
    low, span = starts[0], starts[-1] - starts[0]
    width = min(_CELLS_MAX, len(starts))
    drawn = []
    for row in rows:
        cells = [0] * width
        for bucket in row:
            cells[(_start(bucket) - low) * (width - 1) // span if span else 0] += bucket["count"]
        most = max(cells) or 1
        drawn.append("".join(_BLOCKS[-(-cell * (len(_BLOCKS) - 1) // most)] for cell in cells))
    return drawn


def _start(bucket: Mapping[str, int]) -> int:
    return next(value for name, value in bucket.items() if name != "count")


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
