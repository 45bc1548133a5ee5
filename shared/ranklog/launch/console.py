"""The console of a job, handed down to launchers whose own output is captured.

Under `ranklog run` fd 1 and 2 of torchrun are files of the spool. What it copies of its ranks' output
must not go there, or it would be stored twice: copies of the console's descriptors go down with it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator, Mapping

VARIABLE = "RANKLOG_CONSOLE"
_DESCRIPTOR_MIN = 110
OWN = (1, 2)


@contextlib.contextmanager
def handed_down() -> Iterator[dict[str, str]]:
    """Variables for a child that may inherit descriptors; nothing where there is no console."""
    kept: list[int] = []
    try:
        for number in OWN:
            kept.append(fcntl.fcntl(number, fcntl.F_DUPFD, _DESCRIPTOR_MIN))  # inheritable
        yield {VARIABLE: ",".join(f"{fd}:{_identity(fd)}" for fd in kept)}
    except OSError:
        yield {}
    finally:
        for fd in kept:
            os.close(fd)


def console_of(environ: Mapping[str, str]) -> tuple[int, int]:
    """Descriptors of the console's stdout and stderr: handed down if they are there, else 1 and 2."""
    found = []
    for word in environ.get(VARIABLE, "").split(","):
        number, _, identity = word.partition(":")
        if number.isdecimal() and _identity(int(number)) == identity:
            found.append(int(number))
    return (found[0], found[1]) if len(found) == 2 else OWN


def _identity(fd: int) -> str:
    """What tells that a descriptor is still the one it was; a program may have closed and reused it."""
    try:
        status = os.fstat(fd)
    except OSError:
        return ""
    return f"{status.st_dev}.{status.st_ino}.{status.st_rdev}"
