"""The kernel's log, record by record from /dev/kmsg: Xid, ECC, links, the out-of-memory killer."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ranklog.agent.framer import Framer
from ranklog.agent.host_lines import HostLine, parse_kmsg
from ranklog.agent.mask import Masker
from ranklog.agent.rows import Row, StreamState
from ranklog.limits import SECOND_NS
from ranklog.model.frame import TS_ARRIVAL

KMSG = Path("/dev/kmsg")
# The kernel gives one record a read, and refuses a buffer that is too small for it.
RECORD_BYTES_MAX = 16 * 1024
# Records moved at once, so that a flood of them does not hold up the ranks' lines.
READ_RECORDS_MAX = 500
# What the kernel said shortly before the agent came is about the job as well.
BEFORE_NS = 600 * SECOND_NS


def boot_id(root: Path = Path("/")) -> str:
    """Tells this boot from another one: sequence numbers begin anew with each."""
    try:
        return (root / "proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def boot_ns() -> int:
    """When the clock of the kernel's log was 0."""
    return time.time_ns() - time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def add_line(
    framer: Framer, state: StreamState, masker: Masker, line: HostLine, now_ns: int
) -> None:
    """One line into its stream. A time to come would hold all later lines up there: it is now."""
    texts = [line.text]
    state.masked += masker.lines(texts)
    flags = TS_ARRIVAL if line.ts_ns is None else 0
    ts_ns = now_ns if line.ts_ns is None else max(0, min(line.ts_ns, now_ns))
    framer.add(
        state,
        Row(ts_ns, texts, line.level, line.site, metadata=line.metadata or None, flags=flags),
    )


class KernelSource:
    """/dev/kmsg (or a file of its records). `since_ns`: older records are passed over."""

    def __init__(
        self, state: StreamState, masker: Masker, *, path: Path = KMSG, since_ns: int = 0
    ) -> None:
        """Raises OSError: who may not read the kernel's log."""
        self.state = state
        self.records = 0
        self.offset = 0  # the number of the last record
        self._masker = masker
        self._fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        self._since_ns = since_ns
        self._boot = boot_id()
        self._boot_ns = boot_ns()
        self._last: int | None = None
        self._pending: list[bytes] = []

    def saved(self) -> list[Any]:
        """Where it stands, for the agent's log."""
        return [self._boot, self._last, self.records]

    def restore(self, saved: Sequence[Any]) -> None:
        """Go on behind the last record, if the kernel is the same."""
        boot, last, self.records = saved[:3]
        if boot == self._boot and last is not None:
            self._last, self.offset, self._since_ns = last, last, 0

    def free(self, saved: Sequence[Any], *, upto: int | None = None) -> None:
        """The kernel forgets by itself."""

    def read(self, framer: Framer, now_ns: int, *, final: bool) -> bool:
        """Move some records to the framer; whether there was any."""
        moved = False
        for _ in range(READ_RECORDS_MAX):
            record = self._next()
            if record is None:
                break
            found = parse_kmsg(record, self._boot_ns)
            if found is not None:
                moved |= self._take(framer, now_ns, *found)
        return moved

    def close(self) -> None:
        os.close(self._fd)

    def _take(self, framer: Framer, now_ns: int, sequence: int, line: HostLine) -> bool:
        if self._last is not None and sequence <= self._last:
            return False
        if line.ts_ns is not None and line.ts_ns < self._since_ns:
            return False
        if self._last is not None and sequence > self._last + 1:
            framer.drop(self.state, sequence - self._last - 1, "overwritten in the kernel's log")
        self._last = self.offset = sequence
        self.records += 1
        add_line(framer, self.state, self._masker, line, now_ns)
        return True

    def _next(self) -> bytes | None:
        """The next record; None where there is none now."""
        if self._pending:
            return self._pending.pop()
        while True:
            try:
                data = os.read(self._fd, RECORD_BYTES_MAX)
            except BlockingIOError:
                return None
            except OSError as error:
                if error.errno == errno.EPIPE:  # the oldest were overwritten: go on with what is
                    continue
                return None
            if not data:
                return None
            # The device gives one record a read, a file many: they are told apart by their heads.
            whole = data.replace(b"\n ", b"\0 ").split(b"\n")
            self._pending = [part.replace(b"\0 ", b"\n ") + b"\n" for part in whole if part][::-1]
            if self._pending:
                return self._pending.pop()
