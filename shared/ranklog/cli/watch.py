"""`ranklog watch`: what is wrong with a run while it goes on, once each, until it has ended."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ranklog.cli.arguments import query_text
from ranklog.cli.console import Console
from ranklog.cli.scope import FOUND, restrictions
from ranklog.cli.source import at_source, open_client
from ranklog.cli.times import shown_time, zone_of
from ranklog.cli.watch_send import call_webhook, check_webhook, run_command
from ranklog.errors import BadInput

if TYPE_CHECKING:
    from datetime import tzinfo

    from ranklog.client.watch import Round
    from ranklog.client.words import Restrictions

ALERTED = 4
_COLOURS = {"critical": "bright red", "warning": "yellow"}


def run(arguments: argparse.Namespace, console: Console) -> int:
    """0 when the run has ended; with `--exit-code` 4 if it failed or an alert has not ended."""
    zone = zone_of(arguments.tz)
    if not arguments.run:
        raise BadInput("watch which run?", hint="--run NAME")
    if arguments.webhook:
        check_webhook(arguments.webhook)
    from ranklog.client.watch import Watch, watch_rounds
    from ranklog.limits import SECOND_NS
    from ranklog.spmd.watch.news import Patience

    patience = Patience(times=arguments.times, floor_ns=int(arguments.patience * SECOND_NS))
    watch = Watch(
        open_client(arguments),
        query_text(arguments),
        cast("Restrictions", restrictions(arguments)),
        patience=patience,
        state_file=Path(arguments.state) if arguments.state else None,
    )
    if not console.json and not arguments.once:
        console.note(f"watching {watch.run_id}; it ends with the run, or by ctrl-c")
    state, told = "running", 0
    for found in watch_rounds(watch, every_s=arguments.every, once=arguments.once):
        told += len(found.notices)
        _show(console, found, arguments, zone)
        state = found.state
    _conclude(console, watch.run_id, state, watch.firing)
    return ALERTED if arguments.exit_code and (state == "failed" or watch.firing) else FOUND


def _show(console: Console, found: Round, arguments: argparse.Namespace, zone: tzinfo) -> None:
    if found.trouble is not None:
        console.note(f"{found.trouble}; it is asked again")
    for alert in found.notices:
        alert["command"] = at_source(alert["command"], arguments)
        if console.json:
            console.object(alert)
        else:
            _print(console, alert, zone)
        sys.stdout.flush()  # somebody waits for it
        for trouble in (
            run_command(arguments.exec, alert) if arguments.exec else None,
            call_webhook(arguments.webhook, alert, sleep=time.sleep) if arguments.webhook else None,
        ):
            if trouble is not None:
                console.note(console.safe(trouble))


def _print(console: Console, alert: dict[str, Any], zone: tzinfo) -> None:
    when = shown_time(alert["ts_ns"], zone)
    message = console.safe(alert["message"])
    if alert["state"] == "resolved":
        head = console.paint(f"resolved {alert['alert']}", "green")
        console.line(f"{when}  {head}: {message}")
        return
    head = console.paint(f"{alert['severity']} {alert['alert']}", _COLOURS[alert["severity"]])
    console.line(f"{when}  {head}: {message}")
    console.line(console.paint(f"    {alert['command']}", "cyan"))
    console.line(f"    {alert['runbook']}")


def _conclude(console: Console, run_id: str, state: str, firing: int) -> None:
    if console.json:
        console.object({"report": {"run": run_id, "state": state, "firing": firing}})
        return
    how = {"finished": "ended well", "failed": "failed", "unknown": "ended"}.get(state, "goes on")
    alerts = "" if not firing else f"; {firing} alerts have not ended"
    console.note(f"{run_id} {how}{alerts}")
