"""What an agent does, as a file of its spool that anybody of the same user may read.

agent.status   JSON, written anew every second
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from ranklog.agent.collector import Collector
from ranklog.agent.process import SpooledProcess
from ranklog.produce import spool
from ranklog.produce.identity import Identity

FILE = spool.AGENT_STATUS
PERIOD_S = 1.0
# Processes that are named; of more only the number is told.
PROCESSES_MAX = 256


def describe(collector: Collector, destination: str, started_at: float) -> dict[str, Any]:
    """Everything `ranklog agent status` shows."""
    sender, wal, ledger = collector.sender, collector.wal, collector.ledger
    named = sorted(collector.processes.known.values(), key=lambda one: one.incarnation)
    return {
        "pid": os.getpid(),
        "agent": ledger.framer.agent,
        "at": time.time(),
        "started_at": started_at,
        "destination": destination,
        "log": {"frames": wal.unsent, "bytes": wal.unsent_bytes, "disk_bytes": wal.disk_bytes},
        "spool": {"used_bytes": ledger.used_bytes, "quota_bytes": ledger.quota_bytes},
        "sent": {
            "frames": sender.frames_sent,
            "bytes": sender.bytes_sent,
            "refused": sender.refused,
            "last_at": sender.last_sent_at,
        },
        "refused": {
            "frames": sender.kept.frames,
            "bytes": sender.kept.bytes,
            "lost_frames": sender.kept.lost_frames,
            "lost_lines": sender.kept.lost_lines,
            "reason": sender.kept.reason,
        },
        "error": sender.last_error if sender.failing_since is not None else "",
        "disk_error": ledger.disk_error,
        "damaged_frames": wal.damaged,
        "lost_by_quota": ledger.lines_lost,
        "masked": dict(collector.masked),
        "host_logs": collector.host_logs,
        "processes": [_process(one) for one in named[:PROCESSES_MAX]],
        "more_processes": max(0, len(named) - PROCESSES_MAX),
    }


def _process(process: SpooledProcess) -> dict[str, Any]:
    who: Identity = process.files.identity
    described: dict[str, Any] = {
        "incarnation": process.incarnation,
        "pid": process.files.pid,
        "run": who.run,
        "rank": who.rank,
        "done": process.done,
        "failure": process.failure,
        "streams": {
            state.stream.channel: {"lines": state.next_seq, "masked": state.masked}
            for state in process.streams
            if state.next_seq or state.stream.channel in process.files.files
        },
        "sources": {},
    }
    if process.sdk is not None:
        described["sources"]["sdk"] = process.sdk.status()
    for channel, source in process.texts.items():
        described["sources"][channel] = source.status()
    return described


def write(folder: Path, described: dict[str, Any]) -> None:
    """Whole or not at all. Raises OSError."""
    partial = folder / f".status.{os.getpid()}.partial"
    fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "w") as file:
        json.dump(described, file)
    partial.rename(folder / FILE)


def read(folder: Path) -> dict[str, Any] | None:
    """The last status, with `running`: whether an agent works on the folder now. None: none yet."""
    try:
        described = json.loads((folder / FILE).read_text())
    except (OSError, ValueError):
        return None
    if not isinstance(described, dict):
        return None
    return {**described, "running": folder.is_dir() and spool.has_collector(folder)}
