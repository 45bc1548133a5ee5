"""`ranklog usage`: what a tenant stores, sends and scans, and its quotas."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from ranklog.cli.console import Console
from ranklog.cli.scope import restrictions
from ranklog.cli.source import open_store_of
from ranklog.cli.tables import print_table, shown_bytes
from ranklog.errors import BadInput
from ranklog.limits import HOUR_NS

if TYPE_CHECKING:
    from ranklog.access.policy import Policy
    from ranklog.client.usage import StoredUsage
    from ranklog.store.protocol import Store

HOURS = 24


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Set quotas where some are given; then say what is used."""
    from ranklog.access.meter import read_usage
    from ranklog.access.policy import read_policy
    from ranklog.client.reader import local_reader
    from ranklog.client.usage import stored_usage
    from ranklog.client.words import read_query

    store, tenant = open_store_of(arguments, create=False)
    if arguments.quota:
        _set_quotas(store, tenant, arguments.quota)
    reader = local_reader(store, tenant)
    # of all time, where nothing else is said
    given: Any = restrictions(arguments)
    if not {"run", "since", "until", "last"} & {name for name, value in given.items() if value}:
        given["since"] = "1970-01-02"
    stored = stored_usage(reader, read_query("", given, now_ns=reader.now_ns()))
    hour = time.time_ns() // HOUR_NS
    counted: Counter[str] = Counter()
    for counts in read_usage(store, tenant, range(hour - HOURS + 1, hour + 1)).values():
        counted.update(counts)
    policy = read_policy(store, tenant)
    (_print_json if console.json else _print)(console, stored, counted, policy)
    return 0 if stored.objects else 1


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


def _print_json(
    console: Console, stored: StoredUsage, counted: Counter[str], policy: Policy
) -> None:
    for run_id, run_usage in stored.runs.items():
        console.object(run_usage.to_json(run_id))
    report = {
        "objects": stored.objects,
        "stored_bytes": stored.bytes_by_kind.total(),
        "stored_bytes_by_kind": dict(sorted(stored.bytes_by_kind.items())),
        "stored_bytes_by_day": dict(sorted(stored.bytes_by_day.items())),
        "last_24h": {name: counted[name] for name in _COUNTED},
        "quotas": policy.to_json()["quotas"],
    }
    console.object({"report": report})


_COUNTED = ("ingest_bytes", "scan_bytes", "requests", "refused")


def _print(console: Console, stored: StoredUsage, counted: Counter[str], policy: Policy) -> None:
    if stored.runs:
        rows = [
            [
                run_id,
                usage.lines,
                usage.points,
                shown_bytes(usage.text_bytes),
                shown_bytes(round(usage.stored_bytes)),
            ]
            for run_id, usage in stored.runs.items()
        ]
        print_table(console, ["run", "lines", "points", "text", "stored"], rows, wide=0)
    for day, size in sorted(stored.bytes_by_day.items()):
        console.line(f"{day}  {shown_bytes(size)}")
    kinds = ", ".join(
        f"{kind} {shown_bytes(size)}" for kind, size in sorted(stored.bytes_by_kind.items())
    )
    total = shown_bytes(stored.bytes_by_kind.total())
    console.line(f"stored: {total} in {stored.objects} objects ({kinds})")
    console.line(
        f"through the API in {HOURS} hours: {shown_bytes(counted['ingest_bytes'])} sent, "
        f"{shown_bytes(counted['scan_bytes'])} scanned, {counted['requests']} requests, "
        f"{counted['refused']} refused"
    )
    for name, value in policy.to_json()["quotas"].items():
        console.line(f"quota: {name} {value}")
