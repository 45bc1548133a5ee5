"""`ranklog agent`: the node agent by hand, and what the one that works does."""

from __future__ import annotations

import argparse
import glob
import hashlib
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranklog.cli.console import Console
from ranklog.cli.tables import print_table, shown_bytes
from ranklog.errors import BadInput

if TYPE_CHECKING:
    from ranklog.agent.tail import Tail


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Work until nobody logs any more (--stay: until told to stop), or tell the status. 1: no agent works, or not all is sent."""
    from ranklog.produce import spool

    folder = Path(arguments.spool) if arguments.spool else spool.default_spool(os.environ)
    action = " ".join(arguments.status_words)
    if action == "status":
        return _status(folder.absolute(), console)
    if action:
        raise BadInput(f"agent {action}: no such action", hint="ranklog agent, or agent status")
    destination = arguments.destination or os.environ.get("RANKLOG_DESTINATION")
    if not destination:
        raise BadInput("send where?", hint="--destination, or $RANKLOG_DESTINATION")
    from ranklog.agent.main import work

    tails = _tails(arguments, destination)
    if arguments.once and arguments.stay:
        raise BadInput("--once ends, --stay does not", hint="give one of them")
    if arguments.once and tails and not any(_files(one) for one in arguments.tail):
        raise BadInput(
            f"no file at {' '.join(arguments.tail)}", hint="--tail takes a folder or a glob"
        )
    if tails and not arguments.spool:
        # Beside an agent that ranks of this host have.
        name = hashlib.blake2b("\n".join([destination, *arguments.tail]).encode(), digest_size=6)
        folder = folder.with_name(f"{folder.name}-tail-{name.hexdigest()}")
    return work(
        folder.absolute(),
        destination,
        tails=tails,
        once=arguments.once,
        mirror=arguments.mirror,
        stay=arguments.stay,
        host_logs=[arguments.host_logs] if arguments.host_logs else (),
    )


def _tails(arguments: argparse.Namespace, destination: str) -> list[Tail]:
    from ranklog.produce.key_tenant import contradiction

    said = os.environ.get("RANKLOG_TENANT")
    if said and (wrong := contradiction(said, destination, os.environ)):
        raise BadInput(wrong)
    if not arguments.tail:
        return []
    from ranklog.agent.tail import Tail
    from ranklog.importer.paths import rank_by_pattern
    from ranklog.produce.identity import tenant_at

    return [
        Tail(
            pattern,
            tenant=tenant_at(destination, os.environ),
            run=arguments.run or os.environ.get("RANKLOG_RUN"),
            launch=arguments.launch or os.environ.get("RANKLOG_LAUNCH"),
            host=os.environ.get("RANKLOG_HOST") or socket.gethostname(),
            rank_from=rank_by_pattern(arguments.rank_from) if arguments.rank_from else None,
        )
        for pattern in arguments.tail
    ]


def _files(pattern: str) -> bool:
    return os.path.exists(pattern) or bool(glob.glob(pattern, recursive=True))


def _status(folder: Path, console: Console) -> int:
    from ranklog.agent import status
    from ranklog.produce import spool

    found = status.read(folder)
    is_running = bool(found and found["running"])
    why = "" if is_running else spool.agent_error(folder)
    if console.json:
        told = {"start_error": why} if why else {}
        console.object((found or {"running": False, "spool_folder": str(folder)}) | told)
        return 0 if is_running else 1
    if found is None:
        console.line(f"no agent has worked on {folder}")
    else:
        _show_status(folder, found, console)
    if why:
        console.line(console.safe(f"start      failed: {why}"))
    return 0 if is_running else 1


def _show_status(folder: Path, found: dict[str, Any], console: Console) -> None:
    for line in _lines(folder, found):
        console.line(console.safe(line))
    rows = [row for process in found["processes"] for row in _rows(process)]
    if rows:
        heads = ["run", "rank", "pid", "source", "lines", "masked", "read up to", "behind"]
        print_table(console, heads, rows)
    if found["more_processes"]:
        console.note(f"and {found['more_processes']} processes more")


def _lines(folder: Path, found: dict[str, Any]) -> Iterator[str]:
    state = (
        f"works, pid {found['pid']}" if found["running"] else "none works now; the last one told"
    )
    yield f"agent      {state}, {_ago(found['at'])}"
    yield f"spool      {folder}"
    yield f"sends to   {found['destination']}"
    log, sent, space = found["log"], found["sent"], found["spool"]
    yield f"waiting    {log['frames']:,} frames, {shown_bytes(log['bytes'])}"
    yield (
        f"sent       {sent['frames']:,} frames, {shown_bytes(sent['bytes'])}, "
        f"last {_ago(sent['last_at'])}, refused {sent['refused']}"
    )
    kept = found.get("refused") or {}  # an agent from before this was kept may have told last
    if kept.get("frames") or kept.get("lost_frames"):
        yield f"refused    {_refused(folder, kept)}"
    yield (
        f"disk       {shown_bytes(space['used_bytes'])} of {shown_bytes(space['quota_bytes'])}"
        f"{', lost ' + format(found['lost_by_quota'], ',') + ' lines' if found['lost_by_quota'] else ''}"
    )
    if found["masked"]:
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in sorted(found["masked"].items()))
        yield f"masked     {kinds}"
    for name, told in sorted(found["host_logs"].items()):
        yield f"host log   {name}: {told}"
    for process in found["processes"]:
        if process["failure"]:
            yield f"unread     {process['incarnation']}: {process['failure']}"
    for key, word in (("error", "error"), ("disk_error", "disk error")):
        if found[key]:
            yield f"{word:<10} {found[key]}"


def _refused(folder: Path, kept: dict[str, Any]) -> str:
    says = (
        f"{kept['frames']:,} kept ({shown_bytes(kept['bytes'])}), "
        f"ranklog replay {folder / 'refused'} sends them"
    )
    if kept["lost_frames"]:
        says += f"; {kept['lost_frames']:,} with {kept['lost_lines']:,} lines had no room"
    return f"{says}: {kept['reason']}" if kept["reason"] else says


def _rows(process: dict[str, Any]) -> Iterator[list[object]]:
    for name, source in process["sources"].items():
        channel = "logging" if name == "sdk" else name
        stream = process["streams"].get(channel, {"lines": 0, "masked": 0})
        place = source
        if name == "sdk":
            ring, journal = source["ring"], source["journal"]
            place = ring or {**(journal or {"offset": 0}), "lag_bytes": None}
        behind = place.get("lag_bytes")
        yield [
            process["run"],
            process["rank"],
            process["pid"],
            channel,
            stream["lines"],
            stream["masked"],
            place.get("cursor", place.get("offset")),
            None if behind is None else shown_bytes(behind),
        ]


def _ago(at: float | None) -> str:
    if at is None:
        return "never"
    seconds = max(0, round(time.time() - at))
    return f"{seconds} s ago" if seconds < 600 else f"{seconds // 60} min ago"
