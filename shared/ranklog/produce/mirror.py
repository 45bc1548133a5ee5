"""Copies what a process writes into its captured files to the console, as it was and soon.

`python -ISE mirror.py PID SOURCE:CONSOLE…` is a process of its own, beside a rank that captured its
own descriptors: it imports nothing of ours, outlives the rank however that ends, and ends when
nobody is left who could write. Sources and consoles are descriptors that it inherits.
"""

from __future__ import annotations

import os
import sys
import time

# Soon enough for a person; 20 looks a second at a file that does not grow cost nothing.
BUSY_S, IDLE_S = 0.005, 0.05
PIECE_BYTES = 64 * 1024


class Copy:
    """One file and where it goes. `prefix` is put before each line, as torchrun's tee does."""

    def __init__(self, file: int, console: int, prefix: bytes = b"") -> None:
        """Both are descriptors; the file's is ours from here on, and its offset is how far we are."""
        self._file = file
        self._console = console
        self._prefix = prefix
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
            os.lseek(self._file, os.lseek(self._file, 0, os.SEEK_CUR), os.SEEK_DATA)
        except OSError:
            return b""  # no data behind
        return os.read(self._file, PIECE_BYTES)

    def _prefixed(self, data: bytes) -> bytes:
        *lines, self._partial = (self._partial + data).split(b"\n")
        return b"".join(b"%b%b\n" % (self._prefix, line) for line in lines)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:  # somebody made the terminal so
            time.sleep(BUSY_S)


def follow(pid: int, copies: list[Copy]) -> None:
    """Copy until the process is gone and all it wrote is on the console."""
    while copies:
        alive = _is_alive(pid)  # asked before copying: what it wrote last is copied below
        copied = False
        for copy in list(copies):
            try:
                copied = copy.pump() or copied
            except OSError:  # the console is gone; what was written is in the spool
                copies.remove(copy)
        if not alive and not copied:
            return
        time.sleep(BUSY_S if copied else IDLE_S)


def _is_alive(pid: int) -> bool:
    """Not a zombie either. Its number can't come back while we look every 50 ms."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


if __name__ == "__main__":
    pairs = [word.split(":") for word in sys.argv[2:]]
    follow(int(sys.argv[1]), [Copy(int(file), int(console)) for file, console in pairs])
