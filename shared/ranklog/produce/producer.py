"""What a process has of ranklog: its journal, and what it already told the journal.

Emit is: get the call site's and context's number (each is written once), pack, one `write`. Nothing
is locked. A forked child gets a journal of its own at its first line.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from ranklog import limits
from ranklog.model.levels import WARNING
from ranklog.produce import context, spool, trouble
from ranklog.produce.clock import now_ns
from ranklog.produce.context import Stamp, current, current_iteration
from ranklog.produce.identity import Identity
from ranklog.produce.journal import CLOSED, CONTEXT, DROP, LINE, SITE, append, encode_record

# A process's journal stops taking lines below WARNING here, and any line at 1.25 times this: a job
# in a logging loop must not fill the node's disk. What is dropped is counted and told.
JOURNAL_BYTES_MAX = 1024 * limits.MIB
# Longer texts are cut; a frame could not carry them.
TEXT_CHARACTERS_MAX = 8 * limits.MIB
# Call sites and contexts remembered at once; over it they are forgotten and told again.
INTERNED_MAX = 65_536
POLL_S = 0.02


class Producer:
    """The journal of one process. Methods never raise for reasons of ours or of the disk's."""

    def __init__(
        self,
        folder: Path,
        identity: Identity,
        *,
        launched: bool = False,
        metadata: dict[str, int | float | str] | None = None,
    ) -> None:
        self.folder = folder
        self.process = spool.ProcessFiles(
            identity=identity,
            incarnation=spool.new_incarnation(),
            pid=os.getpid(),
            start=spool.process_start(os.getpid()),
            files={},
            launched=launched,
            metadata=metadata or {},
        )
        self.ensure_collector: Callable[[], None] = lambda: None
        self.has_destination = False
        self._fd = -1
        self._forget()
        self._closed = False
        self._open()

    # --- lines ----------------------------------------------------------------------------------

    def emit(
        self,
        level: int,
        site: int,
        text: str,
        metadata: dict[str, Any] | None = None,
        trace: str | None = None,
        ts_ns: int = 0,
    ) -> None:
        """Write one record. `site` is from `site_number`; `trace` is a traceback's text."""
        if self._fd < 0 and not self._reopen():
            return
        overlay = current()
        if len(text) > TEXT_CHARACTERS_MAX:
            text = text[:TEXT_CHARACTERS_MAX]
        record = encode_record(
            [
                LINE,
                ts_ns or now_ns(),
                level,
                site,
                0 if overlay is context.EMPTY else self._context_number(overlay),
                current_iteration(),
                text,
                metadata or None,
                trace,
            ]
        )
        self._write(record, level)

    def site_number(self, file: str, line: int, function: str | None, logger: str | None) -> int:
        """The number of a call site, told to the journal before its first line."""
        key = (file, line, function, logger)
        number = self._sites.get(key)
        if number is None:
            if self._fd < 0 and not self._reopen():
                return 0
            number = next(self._numbers)
            self._append(encode_record([SITE, number, f"{file}:{line}", function, logger]))
            if len(self._sites) >= INTERNED_MAX:
                self._sites.clear()
            self._sites[key] = number
        return number

    def drop(self, lines: int, reason: str) -> None:
        """Tell of lines that will not come."""
        if self._fd >= 0:
            self._append(encode_record([DROP, lines, reason]))

    # --- delivery and end -----------------------------------------------------------------------

    def flush(self, timeout_s: float) -> int:
        """Wait until all that was emitted before is delivered; how many records are not."""
        target = self.records
        if not self.has_destination:
            return target - self._acknowledged()
        self.ensure_collector()
        deadline = time.monotonic() + timeout_s
        while (acknowledged := self._acknowledged()) < target and time.monotonic() < deadline:
            time.sleep(POLL_S)
        return max(0, target - acknowledged)

    def close(self) -> None:
        """The end of this process's lines; later ones are dropped."""
        if self._fd < 0 or self._closed:
            self._closed = True
            return
        self._closed = True
        for reason, lines in self._dropped.items():
            self.drop(lines, reason)
        self._append(encode_record([CLOSED]))
        fd, self._fd = self._fd, -1
        os.close(fd)

    def forked(self) -> None:
        """In a forked child: let go of the parent's journal; the first line opens one of our own."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1
        self._forget()
        self.process = replace(
            self.process,
            incarnation=spool.new_incarnation(),
            pid=os.getpid(),
            start=spool.process_start(os.getpid()),
            files={},
            launched=False,
        )

    # --- the file -------------------------------------------------------------------------------

    def _forget(self) -> None:
        self._sites: dict[tuple[str, int, str | None, str | None], int] = {}
        self._contexts: dict[int, tuple[int, Stamp]] = {}
        self._numbers = count(1)
        self._dropped: dict[str, int] = {}
        self._bytes = 0
        self.records = 0

    def _open(self) -> None:
        name = f"{self.process.incarnation}.lines"
        spool.make_spool(self.folder)
        self._fd = spool.open_append(self.folder / name)
        self.process = replace(self.process, files={spool.JOURNAL: name})
        spool.announce(self.folder, self.process)

    def _reopen(self) -> bool:
        """A forked child's first line; False after the end."""
        if self._closed:
            return False
        self._open()
        return True

    def _context_number(self, overlay: Stamp) -> int:
        known = self._contexts.get(id(overlay))
        if known is not None and known[1] is overlay:
            return known[0]
        number = next(self._numbers)
        self._append(encode_record([CONTEXT, number, overlay.rank, overlay.metadata or None]))
        if len(self._contexts) >= INTERNED_MAX:
            self._contexts.clear()
        self._contexts[id(overlay)] = (number, overlay)  # kept, so that its id stays its own
        return number

    def _write(self, record: bytes, level: int) -> None:
        if self._bytes > JOURNAL_BYTES_MAX and (
            level < WARNING or self._bytes > JOURNAL_BYTES_MAX * 1.25
        ):
            self._count_drop("producer quota")
        elif self._append(record):
            self.records += 1
        else:
            self._count_drop("disk full")

    def _append(self, record: bytes) -> bool:
        self._bytes += len(record)
        return append(self._fd, record)

    def _count_drop(self, reason: str) -> None:
        self._dropped[reason] = self._dropped.get(reason, 0) + 1
        trouble.once(reason, f"lines are dropped and counted: {reason} ({self.folder})")

    def _acknowledged(self) -> int:
        return spool.read_ack(self.folder / f"{self.process.incarnation}.acked")[1]
