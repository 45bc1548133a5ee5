"""`ranklog compact`: merge small segments and indexes, delete what has had its grace."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from ranklog.cli.console import Console
from ranklog.cli.scope import FOUND
from ranklog.cli.source import open_store_of
from ranklog.errors import BadInput

if TYPE_CHECKING:
    from ranklog.compact.compacting import CompactReport
    from ranklog.store.protocol import Store


def run(arguments: argparse.Namespace, console: Console) -> int:
    """One pass. It can be stopped, repeated and run beside others at any time."""
    from ranklog.upkeep.passes import compact_tenant

    store, tenant = open_store_of(arguments, create=False)
    hours = None if arguments.hour is None else [_hour(text) for text in arguments.hour]
    if hours is None and not arguments.dry_run:
        _release(store, tenant, console)
    report = compact_tenant(store, tenant, time.time_ns(), hours=hours, dry_run=arguments.dry_run)
    if console.json:
        console.object({"report": report.to_json()})
    else:
        _show(console, report, dry_run=arguments.dry_run)
    for key, reason in report.failed.items():
        console.note(f"left as it is: {key}: {reason}")
    return FOUND


def _release(store: Store, tenant: str, console: Console) -> None:
    """Store what waits for the tenant's quota, as far as this hour has room."""
    from ranklog.upkeep.frames import release_tenant

    freed = release_tenant(store, tenant)
    if freed.frames:
        console.note(
            f"stored {freed.frames:,} frames that waited for the quota, {freed.left:,} wait"
        )


def _hour(text: str) -> int:
    from ranklog.layout.keys import parse_hour

    try:
        return parse_hour(text)
    except ValueError as error:
        raise BadInput(f"not an hour: {text}", hint="UTC, such as 2026-03-01T07") from error


def _show(console: Console, report: CompactReport, *, dry_run: bool) -> None:
    would = "would be " if dry_run else ""
    console.line(
        f"{report.merged:,} indexes with their segments {would}merged into {report.merges:,}; "
        f"{report.bundled:,} indexes {would}bundled into {report.bundles:,}; "
        f"{report.deleted + report.orphans:,} objects {would}deleted"
    )
    if report.dropped:
        console.note(f"{report.dropped:,} rows left out: deleted, or there twice")
    if report.pinned:
        console.note(f"{report.pinned:,} replaced objects stay: a pinned question looks at them")
    if report.busy:
        console.note(f"{report.busy:,} hours left to another compactor that is at them")
