"""`ranklog.monitor`: reads the machine every few seconds, in a thread beside the training."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from ranklog.hardware.gpus import find_gpus
from ranklog.hardware.host import Host
from ranklog.hardware.process import Process
from ranklog.hardware.readings import Source
from ranklog.produce import context, session, trouble
from ranklog.produce.telemetry import telemetry

EVERY_S = 10.0
# Readings closer together than this would be seen by the training.
EVERY_S_MIN = 0.1


class Monitor:
    """Reads sources every so often and writes what they say as points, until `close`."""

    def __init__(
        self, of_rank: Sequence[Source], of_host: Sequence[Source], every_s: float
    ) -> None:
        """Points of `of_host` are nobody's rank; those of `of_rank` are this process's."""
        self._of_rank = list(of_rank)
        self._of_host = list(of_host)
        self._every_s = max(every_s, EVERY_S_MIN)
        self._ended = threading.Event()
        self._pid = os.getpid()
        self._thread = threading.Thread(target=self._run, name="ranklog-monitor", daemon=True)

    def __enter__(self) -> Monitor:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def start(self) -> None:
        """Begin; the first readings are taken at once."""
        self._thread.start()

    def close(self) -> None:
        """Take no more readings; waits for one that is under way, for a second at most."""
        self._ended.set()
        if self._pid == os.getpid() and self._thread.is_alive():
            self._thread.join(1.0)

    def look(self, now_ns: int) -> None:
        """One reading of everything. A source that fails says nothing, and the first time why."""
        for sources, nobodys in ((self._of_rank, False), (self._of_host, True)):
            for source in sources:
                try:
                    readings = list(source.read(now_ns))
                except Exception as error:
                    name = type(source).__name__
                    trouble.once(
                        f"monitor-{name}", f"reading {name.lower()} failed: {error!r:.200}"
                    )
                    continue
                handle = context.context(rank=None) if nobodys else None
                for reading in readings:
                    telemetry(reading.values, **reading.dims)
                if handle is not None:
                    handle.close()

    def _run(self) -> None:
        due_s = time.monotonic()
        while not self._ended.is_set():
            self.look(time.monotonic_ns())
            # In step with the clock, also where a reading took longer than the time between two.
            due_s = max(due_s + self._every_s, time.monotonic())
            self._ended.wait(due_s - time.monotonic())


_running: Monitor | None = None


def monitor(*, every_s: float = EVERY_S, host: bool | None = None) -> Monitor:
    """Read this machine every `every_s` seconds: processors, memory, pressure, I/O, network, GPUs.

    Points of the process (and torch's allocator) are its rank's, those of host and GPUs the host's;
    `host` says whether this process takes those: None is local rank 0's, and a process without one.
    Needs the extra `monitor`. A second call returns the monitor that runs. Never raises.
    """
    global _running
    if _running is not None and not _running._ended.is_set() and _running._pid == os.getpid():
        return _running
    found = Monitor((), (), every_s)
    try:
        producer = session.active()
        if producer is None:
            return found
        local_rank = producer.process.identity.local_rank
        takes_host = local_rank in (None, 0) if host is None else host
        found = Monitor(*sources(takes_host, _say), every_s)
        found.start()
        _running = found
    except Exception:
        trouble.swallow("starting the monitor")
    return found


def sources(
    takes_host: bool, say: Callable[[str], None], takes_process: bool = True
) -> tuple[list[Source], list[Source]]:
    """(of the rank, of the host); `say` hears what this machine has not."""
    try:
        import psutil
    except ImportError:
        say("monitor: psutil is not installed, nothing is read; pip install 'ranklog[monitor]'")
        return [], []
    of_rank: list[Source] = [Process(psutil, _torch)] if takes_process else []
    if not takes_host:
        return of_rank, []
    gpus, why = find_gpus()
    if not gpus:
        say(f"monitor: no GPU is read on this machine ({why})")
    return of_rank, [Host(psutil), *gpus]


def _torch() -> Any:
    return sys.modules.get("torch")


def _say(text: str) -> None:
    session.log(text, "info")
