"""The SDK's lines on their way out of the process: an append-only file of checked records.

    magic 2 · length 4 · CRC 4 · msgpack

One `write` of a whole record to an O_APPEND file: no lock, so that threads, signal handlers and
destructors may log at any moment, and no buffer, so that nothing written dies with the process. A
record that a full disk cut short damages itself only: reading goes on at the next magic.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ranklog import limits
from ranklog.produce import records
from ranklog.produce.records import CLOSED, CONTEXT, DROP, LINE, SITE

RECORD = struct.Struct("<HII")
MAGIC = 0xA76C
__all__ = ["CLOSED", "CONTEXT", "DROP", "LINE", "SITE", "JournalReader", "append", "encode_record"]
_MAGIC_BYTES = struct.pack("<H", MAGIC)
# A claim above this is damage; a line's text is cut far below it.
RECORD_BYTES_MAX = 64 * limits.MIB
READ_BYTES = 1 * limits.MIB


def encode_record(fields: list[Any]) -> bytes:
    """One record, framed. Strings may hold lone surrogates."""
    return framed(records.encode(fields))


def framed(body: bytes) -> bytes:
    """A body as the journal's file holds it."""
    return RECORD.pack(MAGIC, len(body), zlib.crc32(body)) + body


class JournalReader:
    """Reads a journal that may still grow. `offset` is behind the last record given."""

    def __init__(self, path: Path, offset: int = 0) -> None:
        """Begin at an offset that was given before."""
        self._file = path.open("rb", buffering=0)
        self._file.seek(offset)
        self._pending = bytearray()
        self.offset = offset
        self.damaged = 0  # stretches that were skipped

    def read(self, *, final: bool = False) -> Iterator[list[Any]]:
        """The records that are whole now; `final`: nothing will be appended any more."""
        while True:
            chunk = self._file.read(READ_BYTES)
            self._pending += chunk
            yield from self._records(final and not chunk)
            if not chunk:
                return

    def close(self) -> None:
        self._file.close()

    def _records(self, final: bool) -> Iterator[list[Any]]:
        at = 0
        pending = self._pending
        try:
            while len(pending) - at >= RECORD.size:
                magic, length, crc = RECORD.unpack_from(pending, at)
                plausible = magic == MAGIC and length <= RECORD_BYTES_MAX
                end = at + RECORD.size + length
                if plausible and end > len(pending) and not final:
                    return
                body = bytes(pending[at + RECORD.size : end])
                fields = _fields(body) if plausible and zlib.crc32(body) == crc else None
                if fields is None:
                    at = self._next_magic(at)
                    continue
                at = end
                self.offset += RECORD.size + length
                yield fields
        finally:
            del pending[:at]

    def _next_magic(self, at: int) -> int:
        """Where a record may begin behind a damaged stretch."""
        self.damaged += 1
        found = self._pending.find(_MAGIC_BYTES, at + 1)
        # The last byte may be the first half of a magic.
        behind = found if found >= 0 else max(at + 1, len(self._pending) - 1)
        self.offset += behind - at
        return behind


def _fields(body: bytes) -> list[Any] | None:
    try:
        return records.decode(body)
    except ValueError:
        return None


def append(fd: int, record: bytes) -> bool:
    """Write a whole record; False where the disk had no room for (all of) it."""
    try:
        return os.write(fd, record) == len(record)
    except OSError:
        return False
