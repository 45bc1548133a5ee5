"""Starts ranks with fd 1 and 2 in the spool, collects what they say, and records how they ended."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ranklog.agent.collector import POLL_S, Collector
from ranklog.agent.sinks import SingleSink, Sink
from ranklog.produce import spool
from ranklog.produce.identity import Identity

CHANNELS = ("stdout", "stderr")


@dataclass(frozen=True, slots=True)
class Rank:
    """One process to start. `identity` has its rank; `command` is run as it is."""

    identity: Identity
    command: Sequence[str]


@dataclass(slots=True)
class _Started:
    rank: Rank
    process: subprocess.Popen[bytes]
    start: str


class Launcher:
    """Ranks of one launch on this host. The launcher itself logs nothing."""

    def __init__(self, folder: Path, sink: Sink | SingleSink, *, grace_s: float = 10.0) -> None:
        spool.make_spool(folder)
        self._folder = folder.absolute()
        self._collector = Collector(self._folder, sink)
        self._grace_s = grace_s
        self._started: list[_Started] = []

    def start(self, rank: Rank, environ: Mapping[str, str]) -> None:
        """Start a rank with what `ranklog.init` and torch-like code read from the environment."""
        incarnation = spool.new_incarnation()
        files = {channel: f"{incarnation}.{channel}" for channel in CHANNELS}
        outputs = {
            channel: spool.open_append(self._folder / name) for channel, name in files.items()
        }
        try:
            process = subprocess.Popen(
                rank.command,
                stdin=subprocess.DEVNULL,
                env={
                    **environ,
                    **_environment(rank.identity, self._folder),
                    "RANKLOG_CAPTURED": str(self._folder / incarnation),
                },
                **outputs,  # type: ignore[call-overload]
            )
        finally:
            for fd in outputs.values():
                os.close(fd)
        described = spool.ProcessFiles(
            identity=rank.identity,
            incarnation=incarnation,
            pid=process.pid,
            start=spool.announced_start(process.pid),
            files=files,
            launched=True,
        )
        spool.announce(self._folder, described)
        self._started.append(_Started(rank, process, described.start))

    def wait(self, timeout_s: float) -> dict[int, int]:
        """Exit code by rank (negative: the signal), when all have ended and all is delivered.

        When one fails the others have `grace_s` to end by themselves, then get SIGTERM, at last
        SIGKILL; so it goes after `timeout_s` too.
        """
        deadline = time.monotonic() + timeout_s
        failed = False
        while any(started.process.poll() is None for started in self._started):
            if not failed and any(started.process.returncode for started in self._started):
                failed = True
                deadline = min(deadline, time.monotonic() + self._grace_s)
            if time.monotonic() > deadline:
                self._stop()
                break
            self._collect()
            time.sleep(POLL_S)
        codes = {
            started.rank.identity.rank or 0: started.process.wait() for started in self._started
        }
        self._collect()
        self._collector.finish(timeout_s=30.0)
        return codes

    def _collect(self) -> None:
        for started in self._started:
            code = started.process.poll()
            if code is not None:
                self._collector.exited(started.process.pid, started.start, code)
        self._collector.poll()

    def _stop(self) -> None:
        for number, wait_s in ((signal.SIGTERM, self._grace_s), (signal.SIGKILL, 5.0)):
            running = [s.process for s in self._started if s.process.poll() is None]
            for process in running:
                process.send_signal(number)
            until = time.monotonic() + wait_s
            while any(p.poll() is None for p in running) and time.monotonic() < until:
                self._collect()
                time.sleep(POLL_S)


def ranks_of(identity: Identity, world_size: int, command: Sequence[str]) -> list[Rank]:
    """All ranks of a job on one host, each with the same command."""
    return [
        Rank(replace(identity, rank=rank, local_rank=rank, world_size=world_size), command)
        for rank in range(world_size)
    ]


def _environment(identity: Identity, folder: Path) -> dict[str, str]:
    return {
        "RANK": str(identity.rank),
        "LOCAL_RANK": str(identity.local_rank),
        "WORLD_SIZE": str(identity.world_size),
        "RANKLOG_SPOOL": str(folder),
        "RANKLOG_LAUNCHED": "1",
        "RANKLOG_TENANT": identity.tenant,
        "RANKLOG_RUN": identity.run,
        "RANKLOG_LAUNCH": identity.launch,
        "RANKLOG_ATTEMPT": str(identity.attempt),
        "RANKLOG_HOST": identity.host,
        # Their output goes to a file: without this a killed rank's last lines die in its buffer.
        "PYTHONUNBUFFERED": "1",
    }
