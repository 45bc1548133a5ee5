"""The files of one process: ring, journal and definitions, and what has no room in them.

A body goes into the ring, else to the journal (one `write` to an append-only file), else it is
dropped and counted. Nothing waits, nothing is locked.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from ranklog import limits
from ranklog.produce import records, spool, trouble
from ranklog.produce.journal import append, framed
from ranklog.produce.records import CLOSED, DROP
from ranklog.produce.ring import BODY, FULL, TAKEN
from ranklog.produce.rings import open_ring

# A process's journal stops taking lines below WARNING here, and any line at 1.25 times this: a job
# in a logging loop must not fill the node's disk. What is dropped is counted and told.
JOURNAL_BYTES_MAX = 1024 * limits.MIB
# Between two looks at what the agent says.
LOOK_EVERY_S = 5.0
# Drops for want of room, as the ring counts them.
DEBUG, INFO, WARNING, ERROR, TELEMETRY = range(5)


def drop_class(level: int) -> int:
    """Which of the ring's counts a line of this level belongs to."""
    return DEBUG if level < 20 else INFO if level < 30 else WARNING if level < 40 else ERROR


class Output:
    """Opened on the spool's folder. Raises OSError where that can't hold even a journal."""

    def __init__(self, folder: Path, incarnation: str, rings: Path, ring_bytes: int) -> None:
        self.folder = folder
        self._dropped: dict[str, int] = {}
        self._began_s = time.time()
        self._look_s = self._began_s + LOOK_EVERY_S
        self._journal_bytes = self._journal_records = 0
        spool.make_spool(folder)
        self.files = {
            spool.JOURNAL: f"{incarnation}.lines",
            spool.DEFS: f"{incarnation}.defs",
        }
        self._journal = spool.open_append(folder / self.files[spool.JOURNAL])
        self._defs = spool.open_append(folder / self.files[spool.DEFS])
        self.ring = open_ring(rings, folder, f"{incarnation}.ring", ring_bytes)
        if self.ring is not None:
            self.files[spool.RING] = str(self.ring.path)

    @property
    def records(self) -> int:
        """How many were taken, by ring and journal."""
        return self._journal_records + (self.ring.records if self.ring else 0)

    def write(self, body: bytes, is_kept: bool, drops: int) -> None:
        """A LINE or TELEMETRY. `is_kept`: the ring's reserve and more of the quota are for it."""
        if self.ring is not None:
            answer = self.ring.write(BODY, 0, 0, 0, body, is_kept)
            if answer == FULL:
                self.count_ring_drop(drops)
            if answer in (TAKEN, FULL):
                return
        self.append(body, is_kept)

    def append(self, body: bytes, is_kept: bool) -> None:
        """What the ring can't take, to the journal."""
        if self._journal_bytes > JOURNAL_BYTES_MAX and (
            not is_kept or self._journal_bytes > JOURNAL_BYTES_MAX * 1.25
        ):
            self._count_drop("producer quota")
            return
        self._journal_bytes += len(body)
        if append(self._journal, framed(body)):
            self._journal_records += 1
        else:
            self._count_drop("disk full")

    def define(self, fields: list[Any]) -> bool:
        """Whether there was room for it."""
        self._look_at_agent()
        return append(self._defs, framed(records.encode(fields)))

    def _look_at_agent(self) -> None:
        """A call site or context that is new is a good time, and rare: what the agent met is told."""
        now_s = time.time()
        if now_s >= self._look_s:
            self._look_s = now_s + LOOK_EVERY_S
            trouble.tell_denied(self.folder, spool.denied(self.folder, self._began_s))

    def count_ring_drop(self, drops: int) -> None:
        """Counted in the ring itself, where the agent sees it however we end."""
        if self.ring is not None:
            self.ring.count_drop(drops)
        self._tell("ring full")

    def say_goodbye(self) -> None:
        """What was dropped is told; more lines may come."""
        for reason, lines in self._dropped.items():
            self.define([DROP, lines, reason])
        self._dropped.clear()
        self.define([CLOSED])

    def close(self) -> None:
        """Say good-bye, and let go of the files."""
        self.say_goodbye()
        self.abandon()
        if self.ring is not None:
            self.ring.close()

    def abandon(self) -> None:
        """In a forked child: the files are the parent's; its ring is not ours to touch."""
        for fd in (self._journal, self._defs):
            os.close(fd)

    def _count_drop(self, reason: str) -> None:
        self._dropped[reason] = self._dropped.get(reason, 0) + 1
        self._tell(reason)

    def _tell(self, reason: str) -> None:
        trouble.once(reason, f"lines are dropped and counted: {reason} ({self.folder})")
