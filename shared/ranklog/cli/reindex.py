"""`ranklog reindex`: indexes from segments, where they were deleted or damaged."""

from __future__ import annotations

import argparse

from ranklog.cli.console import Console
from ranklog.cli.scope import FOUND
from ranklog.cli.source import open_store_of


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Look through every segment of the tenant; write what is missing."""
    from ranklog.compact.reindex import reindex

    store, tenant = open_store_of(arguments, create=False)
    report = reindex(store, tenant, dry_run=arguments.dry_run, drop_damaged=arguments.drop_damaged)
    if console.json:
        console.object({"report": report.to_json()})
    else:
        would = "would be " if arguments.dry_run else ""
        console.line(
            f"{report.segments:,} segments; {len(report.written):,} indexes {would}written, "
            f"{len(report.dropped):,} damaged ones {would}deleted"
        )
    if report.damaged:
        console.note(
            f"{len(report.damaged):,} damaged indexes stay, and answers partial: what they said of "
            "streams is lost; --drop-damaged goes on without"
        )
    if report.answered:
        console.note(f"{len(report.answered):,} segments without an index: others have their lines")
    for key, reason in report.failed.items():
        console.note(f"not read: {key}: {reason}")
    return FOUND
