"""Sends what a spool holds that no agent works on any more: a job, a pod or a node that is over.

Frames go out as they lie in the log; what processes wrote and nobody framed yet is framed first; at
last what a destination refused before, which another one, or the same set right, may take.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ranklog.agent import refused
from ranklog.agent.collector import Collector
from ranklog.agent.settings import options_from
from ranklog.agent.sinks import Sink, is_refused, open_sink
from ranklog.errors import BadInput, Unavailable
from ranklog.produce import spool
from ranklog.produce.starting import resolved


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

    `folder` may be the `refused` of a spool: then that alone, whether an agent works there or not.
    Raises BadInput where there is no spool, Unavailable where an agent works on it.
    """
    if folder.name == refused.FOLDER and folder.is_dir():
        return _replay_refused(folder, open_sink(destination, environ, sync=False), timeout_s)
    kept = folder / refused.FOLDER
    is_spool = (folder / "wal").is_dir() or kept.is_dir() or any(spool.announced(folder))
    if not is_spool:
        raise BadInput(f"{folder} holds no spool", hint="name the folder that $RANKLOG_SPOOL named")
    options = options_from(environ)
    sink = open_sink(destination, environ, sync=False)
    until = time.monotonic() + timeout_s
    with spool.collector_lock(folder) as ours:
        if not ours:
            raise Unavailable(
                f"an agent works on {folder}",
                hint=f"`ranklog agent status` shows what it does; what was refused: replay {kept}",
            )
        if spool.is_anyone_alive(folder):
            raise Unavailable(f"processes of {folder} run still", hint="start an agent for it")
        before = _replay_refused(kept, sink, timeout_s)
        collector = Collector(folder, sink, options, destination=resolved(destination))
        left = collector.drain(max(0.0, until - time.monotonic()))
        sender = collector.sender
        collector.close()
    os.sync()
    error = sender.last_error if left or sender.refused else before.error
    return Replayed(
        before.frames + sender.frames_sent,
        before.bytes + sender.bytes_sent,
        before.refused + sender.refused,
        before.left + left,
        error,
    )


def _replay_refused(kept: Path, sink: Sink, timeout_s: float) -> Replayed:
    """Frames that were refused, one by one: what is taken is kept no more."""
    until = time.monotonic() + timeout_s
    sent, again, error = 0, 0, ""
    sent_bytes = 0
    for frame in refused.kept_frames(kept):
        if time.monotonic() > until:
            break
        [outcome] = sink.put_all([(frame.key, frame.data)])
        if outcome.error is None:
            refused.forget(frame)
            sent, sent_bytes = sent + 1, sent_bytes + len(frame.data)
            continue
        error = str(outcome.error)
        if not is_refused(outcome.error):
            break
        again += 1
    left = refused.kept_count(kept) - again
    return Replayed(sent, sent_bytes, again, left, error)
