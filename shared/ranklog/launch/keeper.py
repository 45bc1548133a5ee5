"""Keeps an agent alive for a job: one that dies is started again, one that can't work not for ever."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from pathlib import Path

from ranklog.produce import spool, trouble
from ranklog.produce.starting import ensure_agent

# An agent needs so long to begin. One that ends at once (a destination that can't be) is tried anew
# ever more seldom: starting it takes CPU from the job.
WAIT_FIRST_S, WAIT_MAX_S = 2.0, 60.0
# After so many starts in vain the user is told.
STARTS_TOLD = 3


class AgentKeeper:
    """`look` now and then; it starts an agent at most once in WAIT_FIRST_S."""

    def __init__(
        self,
        folder: Path,
        destination: str | None,
        *,
        clock: Callable[[], float] = time.monotonic,
        start: Callable[[Path, str | None], None] = ensure_agent,
        is_there: Callable[[Path], bool] = spool.has_collector,
    ) -> None:
        self._folder = folder
        self._destination = destination
        self._clock = clock
        self._start = start
        self._is_there = is_there
        self._due = 0.0
        self._wait_s = WAIT_FIRST_S
        self._starts = 0
        self._began_s = time.time()  # what an agent told before is not of ours
        self._told = False

    def look(self) -> None:
        """Start one where none works. Never raises."""
        now = self._clock()
        if self._destination is None or now < self._due:
            return
        if self._is_there(self._folder):
            trouble.tell_denied(self._folder, spool.denied(self._folder, self._began_s))
            self._wait_s, self._starts = WAIT_FIRST_S, 0
            return
        self._starts += 1
        why = spool.agent_error(self._folder, self._began_s)
        if not self._told and (why or self._starts == STARTS_TOLD):
            self._told = True
            print(f"ranklog: {self._trouble(why)}", file=sys.stderr)
        with contextlib.suppress(OSError):
            self._start(self._folder, self._destination)
        self._due, self._wait_s = now + self._wait_s, min(2 * self._wait_s, WAIT_MAX_S)

    def _trouble(self, why: str) -> str:
        if why:
            return f"nothing is sent, lines stay in {self._folder}: {why}"
        return (
            f"no agent stays; ranklog agent --destination {self._destination} "
            f"--spool {self._folder} says why"
        )
