"""When the processes of a spool are over, and how they ended.

A parent that started a process tells its exit code in a file. Where nobody tells, what the kernel
showed us is the code. Announcements of one process (its captured output, its own lines) end alike.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from ranklog.agent.exits import ExitWatch
from ranklog.produce import spool
from ranklog.produce.exits import read_exit
from ranklog.produce.spool import ProcessFiles

# A parent that looks for ended children now and then has this long to tell how one ended.
TOLD_S = 2.0
# The kernel wakes our watch when a process ends; the watch needs a moment to look.
SETTLE_S = 0.5


class Endings:
    """Asked about every process at every look, until it is over."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder = folder
        self._clock = clock
        self._watch = ExitWatch()
        self._watched: dict[int, str] = {}  # pid -> when the process that has it began
        self._told: dict[tuple[int, str], int] = {}
        self._gone_at: dict[tuple[int, str], float] = {}
        self._foreign_told = False

    def tell(self, pid: int, start: str, code: int) -> None:
        """A parent in this very process knows."""
        self._told[pid, start] = code

    def is_over(self, process: ProcessFiles, *, hurry: bool = False) -> bool:
        """Whether it has ended, and how is known or will not be known any more.

        `hurry`: what is not told by now is not waited for.
        """
        who = (process.pid, process.start)
        if who not in self._told:
            code = read_exit(self._folder, process.incarnation)
            if code is not None:
                self._told[who] = code
        if who in self._told:
            return True
        if spool.is_foreign(process.start):
            self._tell_foreign()
            return False
        if self._watched.get(process.pid) != process.start:
            self._watched[process.pid] = process.start
            self._watch.forget(process.pid)
        self._watch.watch(process.pid)
        if spool.is_alive(*who):
            return False
        if who not in self._gone_at:
            self._gone_at[who] = self._clock()
            self._watch.settle(process.pid, SETTLE_S)
        gone_at = self._gone_at[who]
        return hurry or not process.launched or self._clock() - gone_at > TOLD_S

    def _tell_foreign(self) -> None:
        if not self._foreign_told:
            self._foreign_told = True
            print(
                "ranklog: processes of another pid namespace log into this spool: their lines are sent, "
                "and nobody sees them end (shareProcessNamespace: true)",
                file=sys.stderr,
            )

    def code(self, process: ProcessFiles) -> int | None:
        """Its exit code (negative: the signal), as far as anybody knows."""
        told = self._told.get((process.pid, process.start))
        if told is not None or self._watched.get(process.pid) != process.start:
            return told
        return self._watch.code(process.pid)

    def close(self) -> None:
        self._watch.close()
