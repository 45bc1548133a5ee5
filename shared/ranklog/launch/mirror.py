"""Copies what processes write into spool files to the console, as it was and soon.

The processes write to files, so that nothing waits for a reader; here a thread reads on. A console
that blocks holds up this thread alone.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from pathlib import Path

# Soon enough for a person; 20 looks a second at a file that does not grow cost nothing.
BUSY_S, IDLE_S = 0.005, 0.05
PIECE_BYTES = 64 * 1024


class Copy:
    """One file and where it goes. `prefix` is put before each line, as torchrun's tee does."""

    def __init__(self, path: Path, console: int, prefix: bytes = b"") -> None:
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._console = console
        self._prefix = prefix
        self._at = 0
        self._partial = b""

    def pump(self) -> bool:
        """Copy what is new; whether anything was. Raises OSError where the console is gone."""
        data = self._read()
        if not data:
            return False
        _write_all(self._console, self._prefixed(data) if self._prefix else data)
        return True

    def finish(self) -> None:
        """Copy the rest, a line without its line feed included."""
        while self.pump():
            pass
        if self._partial:
            _write_all(self._console, self._prefix + self._partial + b"\n")
            self._partial = b""

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)

    def _read(self) -> bytes:
        # What the agent gave back to the disk before we came (a console that blocked) reads as
        # zeros, which nobody wrote.
        try:
            self._at = os.lseek(self._file, self._at, os.SEEK_DATA)
        except OSError:
            return b""  # no data behind
        data = os.pread(self._file, PIECE_BYTES, self._at)
        self._at += len(data)
        return data

    def _prefixed(self, data: bytes) -> bytes:
        *lines, self._partial = (self._partial + data).split(b"\n")
        return b"".join(b"%b%b\n" % (self._prefix, line) for line in lines)


class Mirror:
    """A thread over many copies. `stop` returns when everything written so far is on the console."""

    def __init__(self) -> None:
        self._copies: list[Copy] = []
        self._lock = threading.Lock()  # of the list
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ranklog-mirror", daemon=True)

    def start(self) -> None:
        """Begin; files may be added later too."""
        self._thread.start()

    def add(self, copy: Copy) -> None:
        """One more file."""
        with self._lock:
            self._copies.append(copy)

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


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:  # somebody made the terminal so
            time.sleep(BUSY_S)
