"""What a thread of torchrun's launcher does for captured ranks: their pids, console, agent, ends.

torchrun makes a `PContext` for every attempt. It knows the pids of its ranks, and how each ended, as
soon as torchrun itself does.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Protocol, cast

from ranklog.launch.keeper import AgentKeeper
from ranklog.launch.mirror import Mirror
from ranklog.produce import spool, trouble
from ranklog.produce.exits import write_exit
from ranklog.produce.identity import Identity
from ranklog.produce.manifest import Given, write
from ranklog.produce.mirror import Copy
from ranklog.produce.spool import ProcessFiles

LOOK_S = 0.05
AGENT_LOOK_S = 1.0
ERROR_CHANNEL = "error.json"


class Context(Protocol):
    """The part of torchrun's PContext that we look at."""

    def pids(self) -> dict[int, int]: ...


@dataclass(slots=True)
class Rank:
    """One rank of one attempt. `copies`: channel -> console and prefix; `paths`: what it writes to."""

    local_rank: int
    incarnation: str
    identity: Identity
    error_file: str = ""
    channels: tuple[str, str] = ("stdout", "stderr")
    paths: dict[str, str] = field(default_factory=dict)
    copies: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    described: ProcessFiles | None = None
    mirrored: list[Copy] = field(default_factory=list)


def context_of_caller() -> Context | None:
    """The PContext whose constructor has called the plugin, further up the stack."""
    frame: FrameType | None = sys._getframe(1)
    for _ in range(6):
        if frame is None:
            break
        made = frame.f_locals.get("self")
        if hasattr(made, "pids") and hasattr(made, "wait"):
            return cast("Context", made)
        frame = frame.f_back
    return None


class Watch:
    """One per launcher; `add` for every attempt. Nothing it does can fail the launch."""

    def __init__(self, folder: Path, destination: str | None, command: Sequence[str]) -> None:
        """`command`: the launcher's words, for the run's manifest; none where a parent tells it."""
        self._folder = folder
        self._command = command
        self._keeper = AgentKeeper(folder, destination)
        self._mirror = Mirror()
        self._waiting: list[tuple[Rank, Context | None]] = []
        self._lock = threading.Lock()  # of one look
        self._looked_at = 0.0
        self._thread = threading.Thread(target=self._run, name="ranklog-watch", daemon=True)
        atexit.register(self.finish)

    def add(self, ranks: Sequence[Rank], context: Context | None) -> None:
        """Ranks that are about to start; `context` None: nobody knows their pids."""
        with self._lock:
            self._waiting += [(rank, context) for rank in ranks]
        for rank in ranks:
            for channel, (console, prefix) in rank.copies.items():
                path = self._folder / f"{rank.incarnation}.{channel}"
                rank.mirrored.append(self._mirror.add(path, console, prefix))
        if self._thread.ident is None:
            self._mirror.start()
            self._thread.start()

    def look(self) -> None:
        """Announce ranks that have started, tell of those that have ended."""
        with self._lock:
            for rank, context in list(self._waiting):
                if rank.described is None:
                    self._announce(rank, context)
                elif (code := _exit_code(rank, context)) is not None:
                    self._waiting.remove((rank, context))
                    self._ended(rank, code)
            if time.monotonic() - self._looked_at > AGENT_LOOK_S:
                self._looked_at = time.monotonic()
                self._keeper.look()

    def finish(self) -> None:
        """The launcher ends: what is known by now is told, what was written is on the console."""
        with contextlib.suppress(Exception):
            self.look()
            self.look()
        self._mirror.stop()

    def _run(self) -> None:
        while True:
            try:
                self.look()
            except Exception:
                trouble.swallow("watching ranks")
            time.sleep(LOOK_S)

    def _announce(self, rank: Rank, context: Context | None) -> None:
        pid = os.getpid() if context is None else _pid(rank, context)
        if pid is None:
            return  # not started yet
        files = {channel: f"{rank.incarnation}.{channel}" for channel in rank.channels}
        defs = self._folder / f"{rank.incarnation}.{spool.DEFS}"
        if self._command and rank.local_rank == 0:
            write(defs, rank.identity, Given(), command=self._command)
        rank.described = ProcessFiles(
            identity=rank.identity,
            incarnation=rank.incarnation,
            pid=pid,
            start=spool.announced_start(pid),
            files=files | ({spool.DEFS: defs.name} if defs.exists() else {}),
            launched=hasattr(context, "subprocess_handlers"),
        )
        spool.announce(self._folder, rank.described)

    def _ended(self, rank: Rank, code: int) -> None:
        if code and rank.error_file and os.path.isfile(rank.error_file):
            self._keep_error(rank)
        write_exit(self._folder, rank.incarnation, code)
        for copy in rank.mirrored:
            self._mirror.remove(copy)

    def _keep_error(self, rank: Rank) -> None:
        """What torch's `record` wrote of the exception is a stream of the rank's too."""
        if rank.described is None:
            return
        incarnation = spool.new_incarnation()
        name = f"{incarnation}.{ERROR_CHANNEL}"
        shutil.copyfile(rank.error_file, self._folder / name)
        error = ProcessFiles(
            identity=rank.identity,
            incarnation=incarnation,
            pid=rank.described.pid,
            start=rank.described.start,
            files={ERROR_CHANNEL: name},
        )
        spool.announce(self._folder, error)


def _pid(rank: Rank, context: Context) -> int | None:
    try:
        return context.pids().get(rank.local_rank)
    except (AssertionError, AttributeError, KeyError):  # it has not begun to start them
        return None


def _exit_code(rank: Rank, context: Context | None) -> int | None:
    """As torchrun knows it: it asks the system, we look at what it was told."""
    handlers: Any = getattr(context, "subprocess_handlers", None)
    handler = handlers.get(rank.local_rank) if handlers else None
    code = getattr(getattr(handler, "proc", None), "returncode", None)
    return code if isinstance(code, int) else None
