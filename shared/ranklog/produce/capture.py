"""fd 1 and fd 2 of this process into files of the spool.

A file that another process reads, not a pipe: writing never waits for a reader, C code and crash
reports are in it, and what was written survives the process.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from ranklog.produce import spool
from ranklog.produce.spool import ProcessFiles

DESCRIPTORS = {"stdout": 1, "stderr": 2}
# Where a copy of a console's descriptor is put: out of the way of code that counts on 3, 4, 5.
CONSOLE_FD_MIN = 100


@dataclass(frozen=True, slots=True)
class Console:
    """The descriptors that were 1 and 2 before, to write to and to give back."""

    stdout: int
    stderr: int


def capture_descriptors(folder: Path, process: ProcessFiles) -> Console:
    """Point fd 1 and 2 at new files and announce them as streams of their own."""
    owner = replace(process, incarnation=spool.new_incarnation(), files={}, metadata={})
    owner = replace(
        owner, files={channel: f"{owner.incarnation}.{channel}" for channel in DESCRIPTORS}
    )
    _flush_python()
    kept = {}
    for channel, number in DESCRIPTORS.items():
        kept[channel] = fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, CONSOLE_FD_MIN)
        fd = spool.open_append(folder / owner.files[channel])
        os.dup2(fd, number)  # inheritable, as 1 and 2 are
        os.close(fd)
    spool.announce(folder, owner)
    # A file is block-buffered by Python: lines would die with the process.
    with contextlib.suppress(AttributeError, ValueError):
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    return Console(**kept)


def release_descriptors(console: Console) -> None:
    """Give 1 and 2 back; what Python still buffers goes to the files first."""
    _flush_python()
    for number, fd in ((1, console.stdout), (2, console.stderr)):
        os.dup2(fd, number)
        os.close(fd)


def _flush_python() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError, OSError):
            stream.flush()
