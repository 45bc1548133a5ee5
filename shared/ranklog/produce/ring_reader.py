"""The agent's side of a ring: read with pread, which never maps 8 ranks' rings into one process."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from zlib import crc32

from ranklog.produce.ring import (
    DROP_CLASSES,
    DROPS,
    HEAD,
    HEADER,
    HEADER_BYTES,
    MAGIC,
    RECORD,
    TAIL,
)

READ_BYTES = 1 << 20
_PAIR = struct.Struct("<QQ")
_MASK = 0xFFFF_FFFF
# A record that is published but not whole is asked for again before it is called damaged: on a
# processor that orders stores weakly it may arrive after `head`.
_TRIES = 3


class RingReader:
    """Gives record bodies in order, from what was consumed (`tail`) on.

    `cursor` is behind the last record given, `records` how many were ever given (those consumed
    before this reader was made included), `damaged` how many stretches were skipped. Raises OSError
    where there is no ring, ValueError where it is not one.
    """

    def __init__(self, path: Path) -> None:
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
        self._tries = 0

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
        counts = struct.unpack(f"<{len(DROP_CLASSES)}Q", data)
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

        `final`: the writer is gone, so also what it copied and did not publish, as far as it is
        whole; nothing is waited for. Call until [].
        """
        head = self.head
        bodies = self._published(head, bytes_max, final) if self.cursor < head else []
        if final and not bodies and self.cursor >= head:
            bodies = self._unpublished()
        self.records += len(bodies)
        return bodies

    def close(self) -> None:
        os.close(self._fd)

    def _published(self, head: int, bytes_max: int, final: bool) -> list[bytes]:
        bodies: list[bytes] = []
        data = self._bytes(self.cursor, min(head - self.cursor, max(bytes_max, RECORD.size)))
        at = 0
        while at + RECORD.size <= len(data):
            length, crc = RECORD.unpack_from(data, at)
            end = at + RECORD.size + length
            if end > len(data) and self.cursor + RECORD.size + length <= head:
                if bodies:
                    break
                data, end = self._bytes(self.cursor, RECORD.size + length), RECORD.size + length
            body = data[at + RECORD.size : end]
            if len(body) != length or crc32(body, self.cursor & _MASK) != crc:
                if not bodies:
                    self._meet_damage(head, final)
                break
            bodies.append(body)
            self.cursor += RECORD.size + length
            at = end
            self._tries = 0
        return bodies

    def _meet_damage(self, head: int, final: bool) -> None:
        """Wait for the rest of a record; in vain: go on at the next that is whole."""
        self._tries += 1
        if self._tries < _TRIES and not final:
            return
        self._tries = 0
        self.damaged += 1
        data = self._bytes(self.cursor, head - self.cursor)
        for at in range(1, len(data) - RECORD.size):
            length, crc = RECORD.unpack_from(data, at)
            body_at = at + RECORD.size
            if 0 < length <= len(data) - body_at and crc == crc32(
                data[body_at : body_at + length], (self.cursor + at) & _MASK
            ):
                self.cursor += at
                return
        self.cursor = head

    def _unpublished(self) -> list[bytes]:
        data = self._bytes(self.cursor, RECORD.size)
        length, crc = RECORD.unpack(data)
        room = self.size - (self.cursor - self.tail)
        if not 0 < length <= room - RECORD.size:
            return []
        body = self._bytes(self.cursor + RECORD.size, length)
        if crc32(body, self.cursor & _MASK) != crc:
            return []
        self.cursor += RECORD.size + length
        return [body]

    def _bytes(self, position: int, count: int) -> bytes:
        at = position % self.size
        first = min(count, self.size - at)
        data = os.pread(self._fd, first, HEADER_BYTES + at)
        return data if first == count else data + os.pread(self._fd, count - first, HEADER_BYTES)

    def _pair(self, word: int) -> tuple[int, int]:
        """Two words. One that is met half-written is no danger: CRCs begin with the position."""
        pair: tuple[int, int] = _PAIR.unpack(os.pread(self._fd, _PAIR.size, 8 * word))
        return pair
