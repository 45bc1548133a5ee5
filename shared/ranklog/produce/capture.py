"""fd 1 and fd 2 of this process into files of the spool.

A file that another process reads, not a pipe: writing never waits for a reader, C code and crash
reports are in it, and what was written survives the process. A process beside ours copies the files
to the console that was there before, and goes on when we end.

    <prefix>.stdout, <prefix>.stderr   the files; `prefix` is a path in the spool
    $RANKLOG_CAPTURED                  the prefix, for programs that inherit the descriptors
"""

from __future__ import annotations

import contextlib
import faulthandler
import fcntl
import os
import signal
import stat
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ranklog.produce import detached, mirror, spool, trouble
from ranklog.produce.overflow import guard_streams
from ranklog.produce.spool import ProcessFiles

DESCRIPTORS = {"stdout": 1, "stderr": 2}
VARIABLE = "RANKLOG_CAPTURED"
# Where a copy of a console's descriptor is put: out of the way of code that counts on 3, 4, 5.
DESCRIPTOR_MIN = 100
# At the end of the process or the capture: what was printed before is on the console.
MIRROR_WAIT_S = 1.0


@dataclass(frozen=True, slots=True)
class Captured:
    """Where this process's output goes. `consoles` and `sources` only where we captured it."""

    prefix: Path
    consoles: tuple[int, ...] = ()  # what 1 and 2 were, to give them back
    sources: tuple[
        int, ...
    ] = ()  # the files as the mirror reads them: their offset is its progress


def capture_descriptors(
    folder: Path, process: ProcessFiles, tell: Callable[[str], None] = lambda text: None
) -> Captured:
    """Point fd 1 and 2 at new files and announce them as streams of their own. Raises OSError.

    Where the files can grow no more (a full disk), both go back to the console, `tell` is told, and
    `print` does not raise.
    """
    owner = replace(process, incarnation=spool.new_incarnation(), files={}, metadata={})
    owner = replace(
        owner, files={channel: f"{owner.incarnation}.{channel}" for channel in DESCRIPTORS}
    )
    flush_python()
    paths = [folder / owner.files[channel] for channel in DESCRIPTORS]
    consoles, sources = [], []
    for path, number in zip(paths, DESCRIPTORS.values(), strict=True):
        consoles.append(_console_of(number))
        os.close(spool.open_append(path))
        sources.append(_out_of_the_way(os.open(path, os.O_RDONLY | os.O_CLOEXEC)))
    captured = Captured(folder / owner.incarnation, tuple(consoles), tuple(sources))
    _start_mirror(captured)
    for path, number in zip(paths, DESCRIPTORS.values(), strict=True):
        with spool.beyond_standard():
            fd = spool.open_append(path)
        os.dup2(fd, number)  # inheritable, as 1 and 2 are
        os.close(fd)
    spool.announce(folder, owner)
    os.environ[VARIABLE] = str(captured.prefix)
    guard_streams(captured.consoles, tell, lambda: _wait_for_mirror(captured))
    report_faults()
    return captured


def inherited_capture() -> Captured | None:
    """The capture that a launcher or parent of ours has made of fd 2, if it is still there."""
    prefix = os.environ.get(VARIABLE)
    if not prefix or not _is_file(2, Path(f"{prefix}.stderr")):
        return None
    report_faults()
    return Captured(Path(prefix))


def release_descriptors(captured: Captured) -> None:
    """Give 1 and 2 back; what Python still buffers goes to the files, and to the console, first."""
    finish_capture(captured)
    for number, fd in zip(DESCRIPTORS.values(), captured.consoles, strict=False):
        os.dup2(fd, number)
    for fd in (*captured.consoles, *captured.sources):
        os.close(fd)
    if captured.consoles:
        os.environ.pop(VARIABLE, None)


def finish_capture(captured: Captured) -> None:
    """At the end of the process: wait until what was printed is on the console, a second at most.

    The descriptors stay captured: what is printed while Python ends is someone's last words.
    """
    flush_python()
    _wait_for_mirror(captured)


def _wait_for_mirror(captured: Captured) -> None:
    deadline = time.monotonic() + MIRROR_WAIT_S
    for fd in captured.sources:
        while os.lseek(fd, 0, os.SEEK_CUR) < os.fstat(fd).st_size and time.monotonic() < deadline:
            time.sleep(mirror.BUSY_S)


def report_faults() -> None:
    """Let a fault, and SIGTERM, write on stderr where each thread is; then do what they did.

    It is C that writes: a rank that hangs in a collective tells its line, though Python code of a
    signal handler would not run.
    """
    with contextlib.suppress(OSError, ValueError, RuntimeError, AttributeError):
        if not faulthandler.is_enabled():
            faulthandler.enable(2)
        faulthandler.register(signal.SIGTERM, 2, all_threads=True, chain=True)
        asked = dump_signal(os.environ)
        if asked is not None:  # nothing else is done then: by itself it would end the process
            handled = signal.getsignal(asked) not in (signal.SIG_DFL, signal.SIG_IGN, None)
            faulthandler.register(asked, 2, all_threads=True, chain=handled)


def dump_signal(environ: Mapping[str, str]) -> int | None:
    """The signal at which `$RANKLOG_DUMP_STACKS` (`SIGUSR1` or `USR1`) wants stacks on stderr."""
    name = environ.get("RANKLOG_DUMP_STACKS", "").strip().upper()
    if not name:
        return None
    found = getattr(signal, name if name.startswith("SIG") else f"SIG{name}", None)
    return int(found) if isinstance(found, signal.Signals) else None


def forget_faults() -> None:
    """In a forked child: whoever forks workers ends them with SIGTERM, and that is no fault."""
    with contextlib.suppress(AttributeError):
        faulthandler.unregister(signal.SIGTERM)


def flush_python() -> None:
    """What the text layer holds back goes to the descriptors now."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError, OSError):
            stream.flush()


def _start_mirror(captured: Captured) -> None:
    pairs = zip(captured.sources, captured.consoles, strict=True)
    detached.start(
        [
            sys.executable,
            "-ISE",
            mirror.__file__,
            str(os.getpid()),
            *(f"{a}:{b}" for a, b in pairs),
        ],
        keep=(*captured.sources, *captured.consoles),
    )


def _console_of(number: int) -> int:
    """A copy of the descriptor; of nothing, where it is closed."""
    try:
        return fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, DESCRIPTOR_MIN)
    except OSError:
        trouble.once("console", f"descriptor {number} is closed: no console to copy to")
        return _out_of_the_way(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC))


def _out_of_the_way(fd: int) -> int:
    copy = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, DESCRIPTOR_MIN)
    os.close(fd)
    return copy


def _is_file(fd: int, path: Path) -> bool:
    try:
        mine = os.fstat(fd)
        return stat.S_ISREG(mine.st_mode) and os.path.samestat(mine, path.stat())
    except OSError:
        return False
