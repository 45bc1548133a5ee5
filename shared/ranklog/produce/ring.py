"""The ring a process logs into: a mapped file that another process reads, and that outlives it.

    header page   magic · version · size │ head │ drops │ tail, tail's records (the agent's)
    data          records end to end, wrapping anywhere: length 4 · CRC 4 · body

`head` and `tail` are bytes ever written and ever consumed. A record is copied first and published by
one store of `head` after it. Its CRC begins with its position, so that what an earlier lap left
behind is never taken for a record. Disk blocks (or tmpfs pages) are there before the first byte: a
sparse mapping on a full file system kills the process that touches it.
"""

from __future__ import annotations

import mmap
import os
import struct
from _thread import RLock
from collections.abc import Callable
from pathlib import Path
from zlib import crc32

MAGIC = b"RLRING1\n"
HEADER = struct.Struct("<8sQ")  # at 0: magic with version, bytes of data
HEADER_BYTES = 4096
RECORD = struct.Struct("<II")
# Words (8 bytes) of the header page; writer and agent on cache lines of their own.
HEAD, DROPS, TAIL, TAIL_RECORDS = 8, 16, 32, 33
# Drops for want of room are counted by what was dropped.
DROP_CLASSES = ("debug", "info", "warning", "error", "telemetry")
# Of the data, kept for warnings and above: one part in so many.
RESERVE_PART = 8
# What `offer` says.
TAKEN, FULL, REENTERED, TOO_LARGE = range(4)

_POSITION_MASK = 0xFFFF_FFFF


class Ring:
    """The writer's side. Made by `create`; threads may share it, forked children must not use it."""

    def __init__(self, path: Path, memory: mmap.mmap, size: int) -> None:
        self.path = path
        self.size = size
        self.records = 0
        # A record that would leave no room for others goes elsewhere.
        self.record_bytes_max = size // 4
        self._memory = memory
        self._words = memoryview(memory)[:HEADER_BYTES].cast("Q")
        self._lock = RLock()
        self._busy = False
        self._head = 0
        self._reserve = size // RESERVE_PART
        self._limits = (size - self._reserve, size)  # of head: without and with the reserve

    @classmethod
    def create(
        cls,
        path: Path,
        size: int,
        allocate: Callable[[int, int, int], object] = os.posix_fallocate,
    ) -> Ring:
        """A new ring of `size` bytes of data. Raises OSError, and leaves no file, if there is no room."""
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            allocate(fd, 0, HEADER_BYTES + size)
            # Populated: the first lap must not fault page by page in the training thread.
            memory = mmap.mmap(
                fd,
                HEADER_BYTES + size,
                flags=mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0),
            )
        except (OSError, ValueError) as error:
            path.unlink(missing_ok=True)
            if isinstance(error, OSError):
                raise
            raise OSError(f"no mapping of {size} bytes: {error}") from error
        finally:
            os.close(fd)
        memory[: HEADER.size] = HEADER.pack(MAGIC, size)
        return cls(path, memory, size)

    def put(self, body: bytes, reserve: bool = False) -> bool:
        """Whether the record was taken; `reserve` may use what is kept for warnings."""
        return self.offer(body, reserve) == TAKEN

    def offer(self, body: bytes, reserve: bool = False) -> int:
        """TAKEN, FULL, TOO_LARGE, or REENTERED: called amid itself by a signal handler or `__del__`.

        Waits for no reader, and for other threads only as long as they copy.
        """
        length = len(body)
        with self._lock:
            # The lock lets its own thread in again, and then this is set: nothing can deadlock.
            if self._busy:
                return REENTERED
            self._busy = True
            try:
                head = self._head
                end = head + 8 + length
                if end > self._limits[reserve] and not self._has_room(end, reserve):
                    return FULL if length <= self.record_bytes_max else TOO_LARGE
                if length > self.record_bytes_max:
                    return TOO_LARGE
                record = RECORD.pack(length, crc32(body, head & _POSITION_MASK)) + body
                at = head % self.size
                memory = self._memory
                if at + 8 + length <= self.size:
                    at += HEADER_BYTES
                    memory[at : at + 8 + length] = record
                else:
                    self._copy_around(at, record)
                self._words[HEAD] = self._head = end
                self.records += 1
                return TAKEN
            finally:
                self._busy = False

    def count_drop(self, drop_class: int, lines: int = 1) -> None:
        """Count what `offer` refused (an index of DROP_CLASSES), where the agent sees it."""
        with self._lock:
            self._words[DROPS + drop_class] += lines

    def close(self) -> None:
        """Unmap; the file stays for the agent. Later offers raise ValueError."""
        with self._lock:
            self._words.release()
            self._memory.close()

    def _has_room(self, end: int, reserve: bool) -> bool:
        tail = self._words[TAIL]
        self._limits = (tail + self.size - self._reserve, tail + self.size)
        return end <= self._limits[reserve]

    def _copy_around(self, at: int, record: bytes) -> None:
        before_end = self.size - at
        self._memory[HEADER_BYTES + at : HEADER_BYTES + self.size] = record[:before_end]
        self._memory[HEADER_BYTES : HEADER_BYTES + len(record) - before_end] = record[before_end:]
