"""`ranklog quarantine list|show|replay`: frames that could not be stored, and storing them after all."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ranklog.cli.console import Console
from ranklog.cli.source import open_store_of
from ranklog.cli.tables import print_table, shown_bytes
from ranklog.cli.times import shown_time, zone_of
from ranklog.errors import BadInput, RanklogError

if TYPE_CHECKING:
    from ranklog.ingest.quarantine import Entry
    from ranklog.ingest.replay import Replay
    from ranklog.store.protocol import Store

_HINT = "ranklog quarantine list, show ID or replay [ID…]"
# What show prints of a record's beginning.
_HEAD_BYTES = 64
NOT_ALL = 3


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Do one of them."""
    action, ids = arguments.action_words, arguments.id_words
    if action not in _ACTIONS:
        raise BadInput(f"no action {action!r}", hint=_HINT)
    if action == "list" and ids:
        raise BadInput(f"list takes no {ids[0]!r}", hint=_HINT)
    if action == "show" and not ids:
        raise BadInput("which record?", hint=_HINT)
    store, named = open_store_of(arguments, create=False)
    tenant = None if arguments.unknown else named
    return _ACTIONS[action](ids, console, store, tenant)


def _list(ids: list[str], console: Console, store: Store, tenant: str | None) -> int:
    from ranklog.ingest.quarantine import list_entries

    entries = list(list_entries(store, tenant))
    if console.json:
        for entry in entries:
            console.object(entry.to_json())
    elif entries:
        zone = zone_of(None)
        heads = ["id", "arrived", "size", "reason", "state", "detail"]
        rows = [
            [
                entry.entry_id,
                shown_time(entry.arrival_ns // 10**6 * 10**6, zone),
                shown_bytes(entry.length),
                entry.code,
                "replayed" if entry.replayed_ns is not None else "waits",
                entry.reason,
            ]
            for entry in entries
        ]
        print_table(console, heads, rows)
    return 0 if entries else 1


def _show(ids: list[str], console: Console, store: Store, tenant: str | None) -> int:
    from ranklog.ingest.quarantine import find_entry
    from ranklog.stream.frames import peek_header

    for entry_id in ids:
        entry = find_entry(store, tenant, entry_id)
        data = store.get(entry.key)
        said = entry.to_json() | {"key": entry.key, "begins": data[:_HEAD_BYTES].hex()}
        try:
            peeked = peek_header(data)
            header = peeked.header
            said["frame"] = {
                "tenant": header.tenant,
                "agent": header.agent,
                "number": header.number,
                "kind": header.kind,
                "rows": header.rows,
                "sealed": bool(peeked.mac),
                "runs": sorted({entry.stream.run for entry in header.streams}),
            }
        except RanklogError as error:
            said["frame"] = None
            said["header"] = error.message
        if console.json:
            console.object(said)
        else:
            for name, value in said.items():
                console.line(f"{name:<12}{console.safe(str(value))}")
    return 0


def _replay(ids: list[str], console: Console, store: Store, tenant: str | None) -> int:
    from ranklog.access.seals import Seals
    from ranklog.ingest.quarantine import find_entry, list_entries
    from ranklog.ingest.replay import ALREADY, REFUSED, replay_entry
    from ranklog.ingest.tenant_rules import TenantRules

    entries: Iterator[Entry] | list[Entry] = (
        [find_entry(store, tenant, entry_id) for entry_id in ids]
        if ids
        else list_entries(store, tenant)
    )
    seals, rules = Seals(store), TenantRules(store)
    done = [
        replay_entry(store, entry, seals=seals, rules=rules, now_ns=time.time_ns())
        for entry in entries
        if ids or entry.replayed_ns is None
    ]
    for replay in done:
        _tell(replay, console)
    refused = sum(replay.state == REFUSED for replay in done)
    already = sum(replay.state == ALREADY for replay in done)
    counts = {"replayed": len(done) - refused - already, "already": already, "refused": refused}
    if console.json:
        console.object({"report": counts})
    else:
        console.line(", ".join(f"{count} {state}" for state, count in counts.items()))
    if refused:
        return NOT_ALL
    return 0 if done else 1


def _tell(replay: Replay, console: Console) -> None:
    entry_id = replay.entry.entry_id
    if console.json:
        console.object(
            {
                "id": entry_id,
                "state": replay.state,
                "lines": replay.lines,
                "points": replay.points,
                "reason": replay.code or None,
                "detail": replay.reason or None,
            }
        )
    elif replay.reason:
        console.note(f"{entry_id}: still {replay.code}: {console.safe(replay.reason)}")


_ACTIONS = {"list": _list, "show": _show, "replay": _replay}
