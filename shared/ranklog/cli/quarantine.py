"""`ranklog quarantine list|show|replay`: frames that could not be stored, and storing them after all."""

from __future__ import annotations

import argparse
from typing import Any

from ranklog.admin import Admin
from ranklog.cli.console import Console
from ranklog.cli.source import open_admin_of
from ranklog.cli.tables import print_table, shown_bytes
from ranklog.cli.times import shown_time, zone_of
from ranklog.delete.actions import this_user
from ranklog.errors import BadInput

_HINT = "ranklog quarantine list, show ID or replay [ID…]"
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
    return _ACTIONS[action](open_admin_of(arguments), ids, console, unknown=arguments.unknown)


def _list(admin: Admin, ids: list[str], console: Console, *, unknown: bool) -> int:
    entries = admin.quarantine(unknown=unknown)["entries"]
    if console.json:
        for entry in entries:
            console.object(entry)
    elif entries:
        zone = zone_of(None)
        heads = ["id", "arrived", "size", "reason", "state", "detail"]
        rows = [
            [
                entry["id"],
                shown_time(entry["arrival_ns"] // 10**6 * 10**6, zone),
                shown_bytes(entry["bytes"]),
                entry["reason"],
                "replayed" if entry["replayed_ns"] is not None else "waits",
                entry["detail"],
            ]
            for entry in entries
        ]
        print_table(console, heads, rows)
    return 0 if entries else 1


def _show(admin: Admin, ids: list[str], console: Console, *, unknown: bool) -> int:
    for entry_id in ids:
        said = admin.quarantined(entry_id, unknown=unknown)
        if console.json:
            console.object(said)
            continue
        for name, value in said.items():
            console.line(f"{name:<12}{console.safe(str(value))}")
    return 0


def _replay(admin: Admin, ids: list[str], console: Console, *, unknown: bool) -> int:
    found = admin.replay(ids, who=this_user(), unknown=unknown)
    for entry in found["entries"]:
        _tell(entry, console)
    counts = found["counts"]
    if console.json:
        console.object({"report": counts | {"left": found["left"]}})
    else:
        console.line(", ".join(f"{count} {state}" for state, count in counts.items()))
        if found["left"]:
            console.note(f"{found['left']} more wait: replay again")
    if counts["refused"] or found["left"]:
        return NOT_ALL
    return 0 if found["entries"] else 1


def _tell(entry: dict[str, Any], console: Console) -> None:
    if console.json:
        console.object(entry)
    elif entry["detail"]:
        console.note(f"{entry['id']}: still {entry['reason']}: {console.safe(entry['detail'])}")


_ACTIONS = {"list": _list, "show": _show, "replay": _replay}
