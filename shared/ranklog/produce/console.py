"""What is on stderr of a captured process and stored already, told so that it is not stored twice.

A record that went to the ring and is also printed by a console handler would be stored again as
text of fd 2. It is still printed where it always was, in its place among other output; we note which
bytes of the file it is, and the agent leaves them out.

    <prefix>.copies   one note a write: channel (1, 2) · where it begins · length · CRC of the bytes

The note is checked against the file: another thread's write between ours and the question where it
ended makes the note wrong, and what it names is then stored like any other text.
"""

from __future__ import annotations

import contextlib
import logging
import os
import struct
import sys
from typing import Any, TextIO
from zlib import crc32

from ranklog.produce import spool, trouble
from ranklog.produce.capture import DESCRIPTORS, Captured

NOTE = struct.Struct("<BQII")


class ConsoleCopy:
    """Notes copies. Made only in processes whose descriptors are captured."""

    def __init__(self, captured: Captured) -> None:
        with spool.beyond_standard():
            self._notes = spool.open_append(captured.prefix.with_suffix(".copies"))
        self._moved: list[tuple[logging.StreamHandler[Any], Any]] = []

    def write(self, text: str) -> None:
        """To stderr. Never raises."""
        try:
            self.note(2, text, sys.stderr)
        except Exception:
            trouble.swallow("writing to the console")

    def note(self, number: int, text: str, stream: TextIO | None) -> None:
        """Write text to a descriptor, after what `stream` still buffers, and note where it stands."""
        encoding, errors = "utf-8", "backslashreplace"
        if stream is not None:
            with contextlib.suppress(AttributeError, ValueError, OSError):
                stream.flush()
                encoding, errors = stream.encoding or encoding, stream.errors or errors
        data = text.encode(encoding, errors)
        # No lock: a forked child must not meet it, and a handler has its own.
        written = os.write(number, data)
        with contextlib.suppress(OSError):  # the console has the descriptor back: nothing is stored
            end = os.lseek(number, 0, os.SEEK_CUR)
            os.write(self._notes, NOTE.pack(number, end - written, written, crc32(data[:written])))

    def move_handlers(self, root: logging.Logger) -> None:
        """Have the root's console handlers note what they write."""
        for handler in root.handlers:
            if type(handler) is not logging.StreamHandler:
                continue  # a subclass may write elsewhere, or close what it has
            for channel, number in DESCRIPTORS.items():
                if handler.stream in (getattr(sys, channel), getattr(sys, f"__{channel}__")):
                    self._moved.append((handler, handler.stream))
                    handler.setStream(_Noting(self, number, handler.stream))

    def close(self) -> None:
        """Give handlers their streams back."""
        for handler, stream in self._moved:
            if isinstance(handler.stream, _Noting):
                handler.setStream(stream)
        self._moved.clear()
        os.close(self._notes)


class _Noting:
    """A stream in a handler's place of stdout or stderr; all but `write` is the stream's own."""

    def __init__(self, copy: ConsoleCopy, number: int, stream: TextIO) -> None:
        self._copy = copy
        self._number = number
        self._stream = stream

    def write(self, text: str) -> int:
        """As a text stream's; the stream's own way where it can't be noted."""
        try:
            self._copy.note(self._number, text, self._stream)
        except (OSError, ValueError):
            return self._stream.write(text)
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
