"""`ranklog audit`: whether what is stored is what agents sent; and the log of what administrators did."""

from __future__ import annotations

import argparse
import json

from ranklog.answer.chain import ALTERED, MISSING, STATES, VERIFIED
from ranklog.cli.console import Console
from ranklog.cli.source import open_store_of
from ranklog.cli.tables import print_table
from ranklog.cli.times import shown_time, zone_of
from ranklog.client.audit import Audit, audit
from ranklog.client.reader import local_reader
from ranklog.client.words import read_query
from ranklog.delete.actions import read_actions

_CODES = {VERIFIED: 0, MISSING: 3, ALTERED: 4}
_FRAMES_SHOWN_MAX = 200


def run(arguments: argparse.Namespace, console: Console) -> int:
    """0: all is there, or was deleted; 1: there is nothing; 3: frames or rows are missing; 4: something was
    altered."""
    store, tenant = open_store_of(arguments, create=False)
    if arguments.log:
        return _log(arguments, console)
    reader = local_reader(store, tenant)
    selector = None
    if arguments.run:
        selector = read_query("", {"run": arguments.run}, now_ns=reader.now_ns()).run
    found = audit(reader, selector)
    if console.json:
        for fate in found.frames:
            if arguments.all or fate.state != VERIFIED:
                console.object(fate.to_json())
        for segment in found.segments:
            console.object(segment)
        report = {"state": found.state, "bytes_read": found.bytes_read, **found.totals}
        console.object({"report": report})
    else:
        _show(found, arguments, console)
    return 1 if not found.frames and not found.segments_read else _CODES[found.state]


def _show(found: Audit, arguments: argparse.Namespace, console: Console) -> None:
    shown = [fate for fate in found.frames if arguments.all or fate.state != VERIFIED]
    rows = [
        [
            fate.agent[:12],
            f"{fate.number}" if fate.number == fate.last else f"{fate.number}-{fate.last}",
            fate.state,
            fate.lines,
            fate.why,
        ]
        for fate in (shown if arguments.all else shown[:_FRAMES_SHOWN_MAX])
    ]
    if rows:
        print_table(console, ("agent", "frame", "state", "rows", "why"), rows)
    if len(shown) > len(rows):
        console.note(f"and {len(shown) - len(rows)} more: --all shows them")
    for item in found.segments:
        console.line(f"{item['state']}: {item['segment'] or item['index']}: {item['why']}")
    totals = found.totals
    words = ", ".join(f"{totals[state]:,} {state}" for state in reversed(STATES) if totals[state])
    console.note(
        f"frames: {words or 'none'}; {totals['rows']:,} rows, {totals['lines_dropped']:,} lines dropped "
        f"before they were sent; {totals['segments']:,} segments, {totals['segments_unsound']:,} of them "
        "not what was committed"
    )


def _log(arguments: argparse.Namespace, console: Console) -> int:
    """The log of actions; 1 where it is empty."""
    store, tenant = open_store_of(arguments, create=False)
    actions = list(read_actions(store, tenant))
    if console.json:
        for action in actions:
            console.object(action.to_json())
        console.object({"report": {"actions": len(actions)}})
        return 0 if actions else 1
    zone = zone_of(None)
    rows = [
        [
            shown_time(one.when_ns, zone),
            one.action,
            one.who,
            one.why or None,
            json.dumps(one.details, ensure_ascii=False),
        ]
        for one in actions
    ]
    if rows:
        print_table(console, ("time", "action", "who", "why", "details"), rows)
    return 0 if actions else 1
