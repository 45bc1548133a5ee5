"""The console of a process whose fd 1 and 2 are captured: for what is stored already.

A record that went to the journal and is also printed by a console handler on the root logger would
be stored twice, once as text on stderr. Such handlers write to the console that was there before
(or to nothing, where a launcher keeps it), as do Python's own reports of what our hooks have logged.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from typing import TextIO

from ranklog.produce.capture import Console


class ConsoleCopy:
    """Where copies go. Made only in processes whose descriptors are captured."""

    def __init__(self, console: Console | None) -> None:
        self._files = {
            channel: _open(None if console is None else getattr(console, channel))
            for channel in ("stdout", "stderr")
        }
        self._moved: list[tuple[logging.StreamHandler[TextIO], TextIO]] = []

    def write(self, text: str) -> None:
        """To what stderr was."""
        with contextlib.suppress(OSError, ValueError):
            self._files["stderr"].write(text)
            self._files["stderr"].flush()

    def move_handlers(self, root: logging.Logger) -> None:
        """Point the root's console handlers away from the captured descriptors."""
        for handler in root.handlers:
            if type(handler) is not logging.StreamHandler:
                continue  # a subclass may write elsewhere, or close what it has
            for channel, file in self._files.items():
                if handler.stream in (getattr(sys, channel), getattr(sys, f"__{channel}__")):
                    self._moved.append((handler, handler.stream))
                    handler.setStream(file)

    def close(self) -> None:
        """Give handlers their streams back."""
        for handler, stream in self._moved:
            if handler.stream in self._files.values():
                handler.setStream(stream)
        self._moved.clear()
        for file in self._files.values():
            with contextlib.suppress(OSError):
                file.close()


def _open(fd: int | None) -> TextIO:
    target = os.devnull if fd is None else os.dup(fd)
    return open(target, "w", encoding="utf-8", errors="backslashreplace", buffering=1)
