"""The agent's side of a ring: read with pread, which never maps 8 ranks' rings into one process."""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path

from ranklog.produce.ring import (
    BODY,
    DROP_CLASSES,
    DROPS,
    FIXED,
    HEAD,
    HEADER,
    HEADER_BYTES,
    MAGIC,
    PAD,
    TAIL,
)

READ_BYTES = 1 << 20
_PAIR = struct.Struct("@QQ")
_WORD = struct.Struct("@Q")
# What is in front of `head` is whole, unless a debugger let another thread in amid a record: it is
# waited for that long before it is called damaged.
PATIENCE_S = 5.0


class RingReader:
    """Gives record bodies in order, from what was consumed (`tail`) on.

    `cursor` is behind the last record given, `records` how many were ever given (those consumed
    before this reader was made included), `damaged` how many stretches were skipped. Raises OSError
    where there is no ring, ValueError where it is not one.
    """

    def __init__(self, path: Path) -> None:
        self.size: int
        self._fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            magic, self.size = HEADER.unpack(os.pread(self._fd, HEADER.size, 0))
            if magic != MAGIC or self.size <= 0:
                raise ValueError(f"{path} is no ring of this version: {magic!r}")
        except (struct.error, ValueError) as error:
            os.close(self._fd)
            raise ValueError(f"{path} is no ring: {error}") from error
        self.cursor, self.records = self._pair(TAIL)
        self.damaged = 0
        self._stuck_at, self._stuck_since = -1, 0.0

    @property
    def head(self) -> int:
        """Bytes ever published."""
        return self._pair(HEAD)[0]

    @property
    def tail(self) -> int:
        """Bytes ever consumed."""
        return self._pair(TAIL)[0]

    def drops(self) -> dict[str, int]:
        """What the writer dropped for want of room since it began, by class; zeros left out."""
        data = os.pread(self._fd, 8 * len(DROP_CLASSES), 8 * DROPS)
        counts = struct.unpack(f"@{len(DROP_CLASSES)}Q", data)
        return {name: count for name, count in zip(DROP_CLASSES, counts, strict=True) if count}

    def seek(self, cursor: int, records: int | None = None) -> None:
        """Go on from there: a cursor given before, not behind `tail`."""
        self.cursor = cursor
        if records is not None:
            self.records = records

    def free(self, cursor: int, records: int | None = None) -> None:
        """All before `cursor` is safe elsewhere: give the room back to the writer."""
        os.pwrite(
            self._fd,
            _PAIR.pack(cursor, self.records if records is None else records),
            8 * TAIL,
        )

    def read(self, bytes_max: int = READ_BYTES, *, final: bool = False) -> list[bytes]:
        """The next bodies, in about `bytes_max` bytes (one at least); [] where there are none now.

        `final`: the writer is gone, nothing is waited for. A body begins with its kind, or is what
        was `put` (records.decode and Definitions tell them apart). Call until [].
        """
        head = self.head
        bodies: list[bytes] = []
        while not bodies and self.cursor < head:
            before = self.cursor
            self._read_lap(min(head, self._end_of_lap()), bytes_max, bodies)
            if not bodies and self.cursor == before and not self._give_up(head, final):
                break
        self.records += len(bodies)
        return bodies

    def close(self) -> None:
        os.close(self._fd)

    def _end_of_lap(self) -> int:
        return (self.cursor // self.size + 1) * self.size

    def _read_lap(self, end: int, bytes_max: int, bodies: list[bytes]) -> None:
        """Add the bodies up to `end`, which lies in the cursor's lap; stop at what is not whole."""
        data = self._bytes(min(end - self.cursor, max(bytes_max, FIXED.size)))
        lap = self.cursor // self.size + 1 & 0xFF
        at = 0
        while at + _WORD.size <= len(data):
            (word,) = _WORD.unpack_from(data, at)
            if word >> 24 & 0xFF != lap:
                return
            if word >> 32 & 0xFF == PAD:
                self.cursor = self._end_of_lap()
                return
            length = word & 0xFFFFFF
            size = FIXED.size + (length + 7 & ~7)
            if at + size > len(data):
                if bodies or self.cursor + size > end:
                    return
                data, at = self._bytes(size), 0
            start = at + (FIXED.size if word >> 32 == BODY else 4)
            bodies.append(data[start : at + FIXED.size + length])
            self.cursor += size
            at += size

    def _give_up(self, head: int, final: bool) -> bool:
        """Whether to go on behind what is not whole and has not come."""
        now = time.monotonic()
        if self._stuck_at != self.cursor:
            self._stuck_at, self._stuck_since = self.cursor, now
        if not final and now - self._stuck_since < PATIENCE_S:
            return False
        self.damaged += 1
        end = min(head, self._end_of_lap())
        data = self._bytes(end - self.cursor)
        whole = (at for at in range(8, len(data), 8) if self._is_chain(data, at))
        self.cursor += next(whole, len(data))
        return True

    def _is_chain(self, data: bytes, at: int) -> bool:
        """Whether records follow one another from here to the end: nothing else looks like that."""
        lap = self.cursor // self.size + 1 & 0xFF
        while at < len(data):
            (word,) = _WORD.unpack_from(data, at)
            kind = word >> 32 & 0xFF
            if word >> 24 & 0xFF != lap or not BODY <= kind <= PAD:
                return False
            if kind == PAD:
                return True
            at += FIXED.size + ((word & 0xFFFFFF) + 7 & ~7)
        return at == len(data)

    def _bytes(self, count: int) -> bytes:
        return os.pread(self._fd, count, HEADER_BYTES + self.cursor % self.size)

    def _pair(self, word: int) -> tuple[int, int]:
        pair: tuple[int, int] = _PAIR.unpack(os.pread(self._fd, _PAIR.size, 8 * word))
        return pair
