"""Which bytes of a captured file are stored already: see `produce.console`, which notes them."""

from __future__ import annotations

import os
from collections import deque
from pathlib import Path
from zlib import crc32

from ranklog.produce.capture import DESCRIPTORS
from ranklog.produce.console import NOTE

# A note of more than this names a write that no reading sees in one piece: it is not looked for.
COPY_BYTES_MAX = 512 * 1024


class Copies:
    """The notes of one channel (1 or 2) of a captured process, in order of their places."""

    def __init__(self, path: Path, channel: int) -> None:
        self._path = path
        self._channel = channel
        self._fd = -1
        self._at = 0
        self._notes: deque[tuple[int, int, int]] = deque()  # begin, end, CRC
        self.bytes_left_out = 0

    @classmethod
    def of(cls, prefix: Path, channel: str) -> Copies | None:
        """The notes about a file of a process; None where its channel has none."""
        number = DESCRIPTORS.get(channel)
        return None if number is None else cls(prefix.with_suffix(".copies"), number)

    def refresh(self) -> bool:
        """Take in new notes; whether the process makes any."""
        if self._fd < 0:
            try:
                self._fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                return False
        while data := os.pread(self._fd, NOTE.size * 4096, self._at):
            whole = len(data) - len(data) % NOTE.size
            if not whole:
                break
            self._at += whole
            for channel, begin, length, crc in NOTE.iter_unpack(data[:whole]):
                if channel == self._channel and 0 < length <= COPY_BYTES_MAX:
                    self._notes.append((begin, begin + length, crc))
        return True

    def split(self, data: bytes, offset: int, *, final: bool) -> tuple[bytes, int]:
        """What of `data`, the file's bytes at `offset`, is no copy; and how many bytes that decides.

        Bytes of a copy whose end is not in `data` stay undecided, unless nothing follows (`final`).
        """
        kept, at, end = [], offset, offset + len(data)
        while self._notes:
            begin, stop, crc = self._notes[0]
            if begin >= end:
                break
            if stop > end and not final:
                end = max(at, begin)
                break
            self._notes.popleft()
            whole = at <= begin and stop <= end
            if whole and crc32(data[begin - offset : stop - offset]) == crc:
                kept.append(data[at - offset : begin - offset])
                self.bytes_left_out += stop - begin
                at = stop
        kept.append(data[at - offset : end - offset])
        return b"".join(kept), end - offset

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
