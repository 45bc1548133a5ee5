"""The ring a process logs into: a mapped file that another process reads, and that outlives it.

    header page   magic · bytes of data │ head │ drops │ tail and its records (the agent's)
    data          records end to end, never across the end of a lap

    record, little-endian words of 8 bytes:
        length 24 bits · lap 8 bits · kind 8 bits · number 24 bits
        ts_ns │ iteration │ context │ `length` bytes, padded to whole words

`head` and `tail` are bytes ever written and ever consumed. Room is taken, filled by one call of
`pack_into`, and then published by a store of `head`. CPython from 3.11 on gives the interpreter away
(to another thread, to a signal handler) only behind a call and at a jump backwards, so what is taken
is filled before anybody else runs: no lock, nothing to deadlock on, and no torn record in front of
`head`, wherever the process is killed. 3.10 and builds without the GIL take a lock. `lap` (one more,
so that no empty page has it) tells a record from what an earlier lap left there, should a debugger
have broken the rule.

Disk blocks (or tmpfs pages) are there before the first byte: a sparse mapping on a full file system
kills the process that touches it.
"""

from __future__ import annotations

import mmap
import os
import struct
import sys
from _thread import RLock
from collections.abc import Callable
from pathlib import Path

from ranklog.produce.compiled import FILLED_BEFORE_ANYBODY_ELSE_RUNS, RingFields

MAGIC = b"RLRING1\n"
HEADER = struct.Struct("<8sQ")  # at 0: magic with version, bytes of data
HEADER_BYTES = 4096
# The C long: converting an int to it takes half of what it takes to 64 bits by name.
FIXED = struct.Struct("@LllL")
assert FIXED.size == 32
# Words of the header page; writer and agent on cache lines of their own.
HEAD, DROPS, TAIL, TAIL_RECORDS = 8, 16, 32, 33
# Drops for want of room are counted by what was dropped.
DROP_CLASSES = ("debug", "info", "warning", "error", "telemetry")
# Of the data, kept for warnings and above: one part in so many.
RESERVE_PART = 8
# Kinds of records; they are below any first byte of a record of the journal.
BODY = 1  # the bytes are a record as the journal holds them
TEXT = 2  # of a call (number): its text
ARGUMENTS = 3  # of a call: what its template is to be filled with
DOUBLE = 4  # of a series (number): one value
VALUES = 5  # of several series (number): a list of values
PAD = 6  # nothing up to the end of the lap
# An iteration that is not there.
NO_ITERATION = -(2**63)
# Numbers of calls and series at most: what comes after them is written as a BODY.
NUMBER_MAX = 2**24 - 1
# What `write` says.
TAKEN, FULL, TOO_LARGE, AMID_ANOTHER = range(4)

_PAD_WORD = PAD << 32


# Records of short payloads: length · lap · kind and number │ time │ iteration │ context │ payload. By
# length of the payload: `pack_into` and the size of the record. A field less to convert than one for
# any length, and no int to put together.
_SHORT = [struct.Struct(f"@HxBIllL{8 * words}s") for words in range(65)]
PACKERS = [
    (short.pack_into, short.size) for length in range(513) for short in [_SHORT[length + 7 >> 3]]
]
PACKED_MAX = len(PACKERS)


class Ring(RingFields):
    """The writer's side. Made by `create`; threads may share it, forked children must not use it.

    `head`, `inline_limit`, `offset` and `lap` are for the hot paths (hot/, producer.py, telemetry.py),
    which do what `write` does without its calls.
    """

    __slots__ = ("_is_writing", "_lock", "_size", "path", "payload_bytes_max", "words")

    def __init__(self, path: Path, memory: mmap.mmap, size: int) -> None:
        self.path = path
        self.attach(memory)
        self.words = memoryview(memory).cast("L")  # eight bytes, and cheaper than "Q"
        self.records = 0
        self.head = 0
        self.offset = HEADER_BYTES  # from a position to its place in this lap
        self.lap = 1
        # Of `head`: where to look again whether there is room. For who writes inline: always
        # where a lock is needed.
        self.limit = self.reserve_limit = self.inline_limit = 0
        # A record that would leave no room for others goes elsewhere.
        self.payload_bytes_max = min(size // 4, 2**24 - 1)
        self._size = size
        self._is_writing = False
        self._lock = None if FILLED_BEFORE_ANYBODY_ELSE_RUNS else RLock()

    @classmethod
    def create(
        cls,
        path: Path,
        size: int,
        allocate: Callable[[int, int, int], object] = os.posix_fallocate,
    ) -> Ring:
        """A new ring of `size` bytes of data (a multiple of 8), readable by this user alone.

        Raises OSError, and leaves no file, if there is no room, or the machine is big-endian.
        """
        if sys.byteorder != "little":
            raise OSError("rings are little-endian")
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
        """Whether a record of the journal's kind was taken; `reserve`: what is kept for warnings."""
        return self.write(BODY, 0, NO_ITERATION, 0, body, reserve) == TAKEN

    def write(
        self, word: int, ts_ns: int, iteration: int, context: int, payload: bytes, reserve: bool
    ) -> int:
        """TAKEN, FULL or TOO_LARGE. `word`: kind, and number 8 bits up. Waits for nobody.

        Signal handlers and destructors may call it amid itself; where a lock is needed, they are
        told so (AMID_ANOTHER) and go elsewhere.
        """
        if self._lock is None:
            return self._write(word, ts_ns, iteration, context, payload, reserve)
        with self._lock:
            if self._is_writing:  # the lock lets its own thread in again
                return AMID_ANOTHER
            self._is_writing = True
            try:
                return self._write(word, ts_ns, iteration, context, payload, reserve)
            finally:
                self._is_writing = False

    def _write(
        self, word: int, ts_ns: int, iteration: int, context: int, payload: bytes, reserve: bool
    ) -> int:
        length = len(payload)
        is_short = length < PACKED_MAX
        if is_short:
            pack_into, size = PACKERS[length]
        elif length > self.payload_bytes_max:
            return TOO_LARGE
        else:
            whole = struct.Struct(f"@IIllL{length + 7 & -8}s")
            pack_into, size = whole.pack_into, whole.size
        while True:
            at = self.head
            # From here to the end of pack_into no other thread and no signal handler runs.
            if at + size <= (self.reserve_limit if reserve else self.limit):
                self.head = at + size
                if is_short:
                    pack_into(
                        self.memory,
                        at + self.offset,
                        length,
                        self.lap,
                        word,
                        ts_ns,
                        iteration,
                        context,
                        payload,
                    )
                else:
                    pack_into(
                        self.memory,
                        at + self.offset,
                        length | self.lap << 24,
                        word,
                        ts_ns,
                        iteration,
                        context,
                        payload,
                    )
                self.words[HEAD] = self.head
                self.records += 1
                return TAKEN
            if not self.make_room(size, reserve):
                return TOO_LARGE if length > self.payload_bytes_max else FULL

    def make_room(self, size: int, reserve: bool) -> bool:
        """Look what the agent has freed, and begin a new lap where this one has no room.

        After True the caller looks at `head` and its limits again. There are no calls in here, so
        nobody else runs.
        """
        at = self.head
        lap = at // self._size
        end_of_lap = (lap + 1) * self._size
        reserve_full_at = self.words[TAIL] + self._size
        full_at = reserve_full_at - self._size // RESERVE_PART
        begin = at if end_of_lap - at >= size else end_of_lap
        if begin + size > (reserve_full_at if reserve else full_at):
            return False
        if begin > at:
            self.words[(at + self.offset) >> 3] = _PAD_WORD | self.lap << 24
            self.head = begin
            lap += 1
            end_of_lap += self._size
        self.offset = HEADER_BYTES - lap * self._size
        self.lap = lap + 1 & 0xFF
        self.reserve_limit = reserve_full_at if reserve_full_at < end_of_lap else end_of_lap
        self.limit = full_at if full_at < end_of_lap else end_of_lap
        if self._lock is None:
            self.inline_limit = self.limit
        return True

    def count_drop(self, drop_class: int, lines: int = 1) -> None:
        """Count what `write` refused (an index of DROP_CLASSES), where the agent sees it."""
        self.words[DROPS + drop_class] += lines

    def close(self) -> None:
        """Unmap; the file stays for the agent. Later writes raise ValueError."""
        self.inline_limit = self.limit = self.reserve_limit = 0
        self.words.release()
        self.detach()
        self.memory.close()
