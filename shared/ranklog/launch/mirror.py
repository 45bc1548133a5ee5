"""A thread that copies files of the spool to the console, in processes that launch others.

A console that blocks holds up this thread alone.
"""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

from ranklog.produce.mirror import BUSY_S, IDLE_S, Copy


class Mirror:
    """`remove` and `stop` return when everything written so far is on the console."""

    def __init__(self) -> None:
        self._copies: list[Copy] = []
        self._lock = threading.Lock()  # of the list
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ranklog-mirror", daemon=True)

    def start(self) -> None:
        """Begin; files may be added later too."""
        self._thread.start()

    def add(self, path: Path, console: int, prefix: bytes = b"") -> Copy:
        """One more file, to a descriptor. Raises OSError."""
        copy = Copy(os.open(path, os.O_RDONLY | os.O_CLOEXEC), console, prefix)
        with self._lock:
            self._copies.append(copy)
        return copy

    def remove(self, copy: Copy) -> None:
        """A file that nobody writes any more: its rest is copied now."""
        with self._lock:
            if copy in self._copies:
                self._copies.remove(copy)
                _finish(copy)

    def stop(self) -> None:
        """Copy the rest and end."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()
        for copy in self._copies:
            _finish(copy)
        self._copies.clear()

    def _run(self) -> None:
        while not self._stop.is_set():
            self._stop.wait(BUSY_S if self._pump_all() else IDLE_S)

    def _pump_all(self) -> bool:
        copied = False
        with self._lock:
            for copy in list(self._copies):
                try:
                    copied = copy.pump() or copied
                except OSError:  # the console is gone; what was written is in the spool
                    self._copies.remove(copy)
                    copy.close()
        return copied


def _finish(copy: Copy) -> None:
    with contextlib.suppress(OSError):
        copy.finish()
    copy.close()
