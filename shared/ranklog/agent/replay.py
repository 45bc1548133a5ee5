"""Sends what a spool holds that no agent works on any more: a job, a pod or a node that is over.

Frames go out as they lie in the log; what processes wrote and nobody framed yet is framed first.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ranklog.agent.collector import Collector
from ranklog.agent.settings import options_from
from ranklog.agent.sinks import open_sink
from ranklog.errors import BadInput, Unavailable
from ranklog.produce import spool


@dataclass(frozen=True, slots=True)
class Replayed:
    """What was sent, and how many frames are left; `error`: why, if any are."""

    frames: int
    bytes: int
    refused: int
    left: int
    error: str = ""


def replay(
    folder: Path, destination: str, environ: Mapping[str, str], *, timeout_s: float
) -> Replayed:
    """Send it all, or what the time allows. Processes that run still are left to their agent.

    Raises BadInput where there is no spool, Unavailable where an agent works on it.
    """
    if not (folder / "wal").is_dir() and not any(spool.announced(folder)):
        raise BadInput(f"{folder} holds no spool", hint="name the folder that $RANKLOG_SPOOL named")
    options = options_from(environ)
    sink = open_sink(destination, environ, sync=False)
    with spool.collector_lock(folder) as ours:
        if not ours:
            raise Unavailable(
                f"an agent works on {folder}", hint="`ranklog agent status` shows what it does"
            )
        if any(spool.is_alive(one.pid, one.start) for one in spool.announced(folder)):
            raise Unavailable(f"processes of {folder} run still", hint="start an agent for it")
        collector = Collector(folder, sink, options)
        left = collector.drain(timeout_s)
        sender = collector.sender
        collector.close()
    os.sync()
    error = sender.last_error if left or sender.refused else ""
    return Replayed(sender.frames_sent, sender.bytes_sent, sender.refused, left, error)
