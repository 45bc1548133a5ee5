"""`print` into a captured descriptor does not fail because of us: a disk that is full is our disk.

Python's stdout and stderr get a lowest layer that gives the descriptors back to the console when a
file can't grow, or has grown beyond its share because nobody collects it.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from collections.abc import Callable
from typing import Any

from ranklog import limits
from ranklog.produce import trouble

# What one descriptor's file may hold that is not delivered: the agent gives delivered parts back.
UNDELIVERED_BYTES_MAX = 1024 * limits.MIB
# Between two looks at the file.
LOOK_BYTES = limits.MIB
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class _Guarded(io.FileIO):
    """fd 1 or 2, written by Python. `give_back` points both descriptors at the console again."""

    def __init__(self, number: int, give_back: Callable[[str], None]) -> None:
        super().__init__(number, "wb", closefd=False)
        self._give_back: Callable[[str], None] | None = give_back
        self._unseen = 0

    def write(self, data: Any) -> int:
        """As FileIO's. Where the file has no room the console gets it."""
        try:
            written = super().write(data)
        except OSError as error:
            if error.errno not in _NO_ROOM or self._give_back is None:
                raise
            self._end("disk full")
            return super().write(data)
        self._unseen += written
        if self._unseen >= LOOK_BYTES and self._give_back is not None:
            self._unseen = 0
            # Holes are no bytes: what is delivered and given back does not count.
            if os.fstat(self.fileno()).st_blocks * 512 > UNDELIVERED_BYTES_MAX:
                self._end("producer quota")
        return written

    def _end(self, reason: str) -> None:
        give_back, self._give_back = self._give_back, None
        if give_back is not None:
            give_back(reason)


def guard_streams(
    consoles: tuple[int, ...], tell: Callable[[str], None], shown: Callable[[], None]
) -> None:
    """Put the layer under `sys.stdout` and `sys.stderr`, which stay the objects they are.

    They are line-buffered from here on: a file's block buffer would die with the process. Objects
    that somebody put in their place are left alone. `shown` returns when the console has all that
    was written.
    """
    given_back = False

    def give_back(reason: str) -> None:
        nonlocal given_back
        if given_back:
            return
        given_back = True
        shown()  # what is in the files comes before what goes to the console itself
        for number, console in enumerate(consoles, 1):
            os.dup2(console, number)
        message = f"output goes to the console alone from here on: {reason}"
        trouble.once("capture", message)
        tell(message)

    for number, stream in enumerate((sys.stdout, sys.stderr), 1):
        with contextlib.suppress(AttributeError, ValueError, OSError):
            if type(stream) is io.TextIOWrapper and stream.fileno() == number:
                stream.flush()
                stream.__init__(  # type: ignore[misc]
                    io.BufferedWriter(_Guarded(number, give_back)),
                    encoding=stream.encoding,
                    errors=stream.errors,
                    newline="\n",
                    line_buffering=True,
                )
