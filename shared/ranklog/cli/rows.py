"""Prints rows of JSON objects with the report last, the same for every listing."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING, Any

from ranklog.answer.render import completeness_json, report_json
from ranklog.cli.console import Console
from ranklog.cli.scope import say_completeness, say_scope

if TYPE_CHECKING:
    from ranklog.client.answer import Listing


def print_objects(console: Console, rows: Sequence[Mapping[str, Any]], listing: Listing) -> None:
    """One JSON object per row, then the report."""
    for row in rows:
        console.object(dict(row))
    console.object(
        {
            "report": report_json(listing.report),
            "completeness": completeness_json(listing.completeness),
        }
    )


def say_around(
    console: Console, listing: Listing, arguments: argparse.Namespace, zone: tzinfo
) -> None:
    """What there is to say about a listing, on stderr."""
    say_scope(console, listing.report, arguments, zone)
    say_completeness(console, listing.completeness, zone)


def state_of(completeness: Any) -> Any:
    """A row's completeness as one word."""
    return completeness.get("state") if isinstance(completeness, dict) else completeness


def ranks_of(ranks: Any) -> Any:
    """A row's ranks, shortened where they are a list."""
    from ranklog.cli.tables import shown_ranks

    return shown_ranks(ranks) if isinstance(ranks, list) else ranks
