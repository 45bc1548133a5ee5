"""The parent of `ranklog run`: starts a program with fd 1 and 2 in the spool, and is as good as not there.

The program's console output is mirrored, its signals are passed on, its end is our end. It stays in
our process group, so that a terminal's Ctrl-C and Ctrl-Z reach it as ever.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ranklog.launch.mirror import Mirror
from ranklog.produce import spool
from ranklog.produce.exits import write_exit
from ranklog.produce.identity import Identity
from ranklog.produce.manifest import Capture, Given, write
from ranklog.produce.mirror import Copy
from ranklog.produce.spool import ProcessFiles

# What a job may be told; SIGCHLD is how we are told that it ended. SIGTSTP, SIGKILL and the signals
# of faults stay what they are.
PASSED_ON = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGWINCH,
)
LOOK_S = 0.5
# When one of several programs fails, the others have this long to end by themselves, then to obey.
GRACE_S = 30.0
# A job that ends before the run has been described is waited for so long.
MANIFEST_WAIT_S = 1.0
NOT_FOUND, NOT_EXECUTABLE = 127, 126


@dataclass(frozen=True, slots=True)
class Program:
    """What to start: words, the whole environment, who it is, and how it labels its lines."""

    words: Sequence[str]
    environ: Mapping[str, str]
    identity: Identity
    labels: str = ""


@dataclass(frozen=True, slots=True)
class _Running:
    described: ProcessFiles
    copies: list[Copy]
    capture: Capture


class Parent:
    """Programs of one launch on this host. Use: `with Parent(…) as parent: parent.start(…)`, `wait`."""

    def __init__(self, folder: Path, *, look: Callable[[], None] = lambda: None) -> None:
        """`look` is called twice a second: who keeps the agent alive."""
        self._folder = folder
        self._look = look
        self._mirror = Mirror()
        self._running: dict[int, _Running] = {}
        self._codes: dict[int, int] = {}
        self._failed_at: float | None = None
        self._inherited: set[signal.Signals] = set()

    def __enter__(self) -> Parent:
        # Blocked, not handled: `sigtimedwait` tells who sent a signal. Programs get the old mask.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [*PASSED_ON, signal.SIGCHLD])
        self._inherited = {signal.Signals(number) for number in before}
        self._mirror.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._mirror.stop()
        signal.pthread_sigmask(signal.SIG_SETMASK, self._inherited)

    def start(self, program: Program) -> None:
        """Start one. Raises FileNotFoundError, PermissionError and what else the system says."""
        incarnation = spool.new_incarnation()
        files = {channel: f"{incarnation}.{channel}" for channel in ("stdout", "stderr")}
        outputs = [spool.open_append(self._folder / name) for name in files.values()]
        try:
            pid = os.posix_spawnp(
                program.words[0],
                list(program.words),
                {**program.environ, "RANKLOG_CAPTURED": str(self._folder / incarnation)},
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, outputs[0], 1),
                    (os.POSIX_SPAWN_DUP2, outputs[1], 2),
                ],
                setsigmask=self._inherited,
                setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],  # Python ignores them; programs don't
            )
        except OSError:
            for name in files.values():
                (self._folder / name).unlink()
            raise
        finally:
            for fd in outputs:
                os.close(fd)
        # What the run says of itself: the program need not know of us.
        defs = self._folder / f"{incarnation}.{spool.DEFS}"
        capture = write(
            defs, program.identity, Given(), command=program.words, environ=program.environ
        )
        described = ProcessFiles(
            identity=program.identity,
            incarnation=incarnation,
            pid=pid,
            start=spool.announced_start(pid),
            files=files | ({spool.DEFS: defs.name} if defs.exists() else {}),
            launched=True,
            labels=program.labels,
        )
        spool.announce(self._folder, described)
        copies = [
            self._mirror.add(self._folder / name, fd) for fd, name in enumerate(files.values(), 1)
        ]
        self._running[pid] = _Running(described, copies, capture)

    def wait(self) -> list[int]:
        """Exit codes in order of start (negative: the signal), when all programs have ended."""
        order = list(self._running)
        looked = 0.0
        while self._reap():
            if time.monotonic() - looked >= LOOK_S:
                self._look()
                looked = time.monotonic()
            self._end_survivors()
            told = signal.sigtimedwait([*PASSED_ON, signal.SIGCHLD], LOOK_S)
            if told is not None and told.si_signo != signal.SIGCHLD:
                self._pass_on(told)
        return [self._codes[pid] for pid in order]

    def _pass_on(self, told: signal.struct_siginfo) -> None:
        # A terminal tells the whole foreground group: who is in it knows already.
        by_terminal = told.si_code > 0
        for pid in self._running:
            with contextlib.suppress(ProcessLookupError):
                if not (by_terminal and os.getpgid(pid) == os.getpgrp()):
                    os.kill(pid, told.si_signo)

    def _reap(self) -> bool:
        """Take note of who has ended; whether anybody is left."""
        for pid in list(self._running):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if not ended:
                continue
            code = os.waitstatus_to_exitcode(status)
            ended_one = self._running.pop(pid)
            self._codes[pid] = code
            for copy in ended_one.copies:
                self._mirror.remove(copy)
            ended_one.capture.wait(MANIFEST_WAIT_S)
            with contextlib.suppress(OSError):  # a full disk: the agent may know by itself
                write_exit(self._folder, ended_one.described.incarnation, code)
            if code and self._failed_at is None:
                self._failed_at = time.monotonic()
        return bool(self._running)

    def _end_survivors(self) -> None:
        if self._failed_at is None or time.monotonic() < self._failed_at + GRACE_S:
            return
        late = time.monotonic() > self._failed_at + 2 * GRACE_S
        for pid in self._running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL if late else signal.SIGTERM)


def end_as(code: int) -> int:
    """End as a program did: by its signal, which does not return; else its exit code."""
    if code >= 0:
        return code
    number = signal.Signals(-code)
    # Its core was written, where cores are: one is enough.
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
    with contextlib.suppress(OSError):  # SIGKILL has no other action
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
    os.kill(os.getpid(), number)
    return 128 - code  # not reached, but for signals that end nobody
