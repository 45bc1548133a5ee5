"""`ranklog audit`: whether what is stored is what agents sent; and the log of what administrators did."""

from __future__ import annotations

import argparse
import json
from typing import Any

from ranklog.answer.chain import ALTERED, MISSING, STATES, VERIFIED
from ranklog.cli.console import Console
from ranklog.cli.source import open_admin_of
from ranklog.cli.tables import print_table
from ranklog.cli.times import shown_time, zone_of
from ranklog.client.waiting import counted
from ranklog.errors import BadInput

_CODES = {VERIFIED: 0, MISSING: 3, ALTERED: 4}
# An API from before it told them leaves them out.
_HELD_BACK = {
    "waiting_frames": "wait for the tenant's quota",
    "quarantined_frames": "are in quarantine",
}
_FRAMES_SHOWN_MAX = 200
_PLACES_SHOWN_MAX = 3


def run(arguments: argparse.Namespace, console: Console) -> int:
    """0: all is there, or was deleted; 1: there is nothing; 3: frames or rows are missing; 4: something was
    altered."""
    if arguments.log and (arguments.run or arguments.all):
        raise BadInput("the log is the tenant's", hint="--log alone")
    admin = open_admin_of(arguments)
    if arguments.log:
        return _log(admin.actions()["actions"], console)
    found = admin.audit(arguments.run, everything=arguments.all)
    if console.json:
        for item in (*found["frames"], *found["segments"]):
            console.object(item)
        console.object({"report": _report(found)})
    else:
        _show(found, arguments, console)
    _tell_held_back(found, console)
    totals = found["totals"]
    nothing = not (any(totals[s] for s in STATES) or totals["segments"] or found["segments"])
    return 1 if nothing else _CODES[found["state"]]


def _report(found: dict[str, Any]) -> dict[str, Any]:
    members = ("state", "bytes_read", *_HELD_BACK)
    return {**{name: found[name] for name in members if name in found}, **found["totals"]}


def _tell_held_back(found: dict[str, Any], console: Console) -> None:
    """Of frames that came and are not stored no chain knows."""
    counts = [(found.get(name, 0), where) for name, where in _HELD_BACK.items()]
    said = ", ".join(f"{counted(frames)} {where}" for frames, where in counts if frames)
    if said:
        console.note(f"frames that are in no chain yet: {said}: ranklog quarantine list")


def _show(found: dict[str, Any], arguments: argparse.Namespace, console: Console) -> None:
    frames = found["frames"]
    rows = [
        [
            one["agent"][:12],
            f"{one['number']}"
            if one["number"] == one["last"]
            else f"{one['number']}-{one['last']}",
            one["state"],
            one["lines"],
            one["why"],
            _shown_places(one["places"]),
        ]
        for one in (frames if arguments.all else frames[:_FRAMES_SHOWN_MAX])
    ]
    if rows:
        print_table(console, ("agent", "frame", "state", "rows", "why", "where"), rows)
    if len(frames) > len(rows):
        console.note(f"and {len(frames) - len(rows)} more: --all shows them")
    for item in found["segments"]:
        where = _shown_places(item["rows"])
        known = f": {where}" if where else ""
        name = item["segment"] or item["index"]
        console.line(f"{item['state']}: {name}: {item['why']}{known}")
    totals = found["totals"]
    if totals["segments_without_index"]:
        console.note(
            f"{totals['segments_without_index']:,} segments have no index, so that no answer has their rows: "
            "ranklog reindex writes what is missing"
        )
    words = ", ".join(f"{totals[state]:,} {state}" for state in reversed(STATES) if totals[state])
    console.note(
        f"frames: {words or 'none'}; {totals['rows']:,} rows, {totals['lines_dropped']:,} lines dropped "
        f"before they were sent; {totals['segments']:,} segments, {totals['segments_unsound']:,} of them "
        f"not what was committed; {totals['rows_summed']:,} stored rows compared with their sums"
    )


def _shown_places(places: list[dict[str, Any]]) -> str | None:
    """Streams with their sequence numbers."""
    shown = [
        f"{one['stream'][:12]} {one['first_seq']}"
        + (f"-{one['last_seq']}" if one["last_seq"] != one["first_seq"] else "")
        for one in places[:_PLACES_SHOWN_MAX]
    ]
    more = len(places) - len(shown)
    return ", ".join([*shown, *([f"and {more} more"] if more else [])]) or None


def _log(actions: list[dict[str, Any]], console: Console) -> int:
    """The log of actions; 1 where it is empty."""
    if console.json:
        for action in actions:
            console.object(action)
        console.object({"report": {"actions": len(actions)}})
        return 0 if actions else 1
    zone = zone_of(None)
    rows = [
        [
            shown_time(one["when_ns"], zone),
            one["action"],
            one["who"],
            one["why"] or None,
            json.dumps(one["details"], ensure_ascii=False),
        ]
        for one in actions
    ]
    if rows:
        print_table(console, ("time", "action", "who", "why", "details"), rows)
    return 0 if actions else 1
