"""`ranklog usage`: what a tenant stores, sends and scans, and its quotas."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from ranklog.cli.console import Console
from ranklog.cli.scope import restrictions
from ranklog.cli.source import open_admin_of, open_store_of
from ranklog.cli.tables import print_table, shown_bytes
from ranklog.errors import BadInput

if TYPE_CHECKING:
    from ranklog.store.protocol import Store


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Set quotas where some are given, which only who has the store may; then say what is used."""
    if arguments.quota:
        store, tenant = open_store_of(arguments, create=False)
        _set_quotas(store, tenant, arguments.quota)
    given: Any = restrictions(arguments)
    found = open_admin_of(arguments).usage(given)
    if console.json:
        for row in found.pop("runs"):
            console.object(row)
        console.object({"report": found})
    else:
        _print(console, found)
    return 0 if found["objects"] else 1


def _set_quotas(store: Store, tenant: str, given: list[str]) -> None:
    from ranklog.access.policy import read_policy, with_quota, write_policy
    from ranklog.delete.actions import Action, record_action, this_user

    policy = read_policy(store, tenant)
    for text in given:
        name, separator, value = text.partition("=")
        if not separator or not (value == "none" or value.isdecimal()):
            raise BadInput(f"--quota {text!r}", hint="NAME=NUMBER, or NAME=none to lift it")
        policy = with_quota(policy, name, None if value == "none" else int(value))
    record_action(
        store, tenant, Action("quota.set", time.time_ns(), this_user(), "", {"quotas": given})
    )
    write_policy(store, tenant, policy)


def _print(console: Console, found: dict[str, Any]) -> None:
    if found["runs"]:
        rows = [
            [
                usage["run_id"],
                usage["lines"],
                usage["points"],
                shown_bytes(usage["text_bytes"]),
                shown_bytes(usage["stored_bytes"]),
            ]
            for usage in found["runs"]
        ]
        print_table(console, ["run", "lines", "points", "text", "stored"], rows, wide=0)
    for day, size in found["stored_bytes_by_day"].items():
        console.line(f"{day}  {shown_bytes(size)}")
    by_kind = found["stored_bytes_by_kind"]
    kinds = ", ".join(f"{kind} {shown_bytes(size)}" for kind, size in by_kind.items())
    total = shown_bytes(found["stored_bytes"])
    console.line(f"stored: {total} in {found['objects']} objects ({kinds})")
    counted = found["last_24h"]
    console.line(
        f"through the API in 24 hours: {shown_bytes(counted['ingest_bytes'])} sent, "
        f"{shown_bytes(counted['scan_bytes'])} scanned, {counted['requests']} requests, "
        f"{counted['refused']} refused"
    )
    console.line(
        f"ingested in 24 hours: {shown_bytes(counted['stream_bytes'])} of frames, "
        f"{counted['parked']} frames waited for the quota"
    )
    if found["waiting"]["frames"]:
        size = shown_bytes(found["waiting"]["bytes"])
        console.line(f"over the quota: {found['waiting']['frames']} frames ({size}) wait for room")
    if found["quarantined_frames"]:
        console.line(f"in quarantine: {found['quarantined_frames']} frames")
    for name, value in found["quotas"].items():
        console.line(f"quota: {name} {value}")
