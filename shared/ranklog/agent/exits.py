"""How processes end that are not ours, and whether anybody may still write to a file of theirs.

A pidfd wakes us when a process ends. Its exit status stands in /proc until its parent has asked for
it, and since Linux 6.15 the pidfd itself tells it after that.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import struct
import threading
from pathlib import Path

# ioctl PIDFD_GET_INFO (linux/pidfd.h): mask, cgroup id, eleven ids, exit status.
_GET_INFO = 0xC040FF0B
_INFO = struct.Struct("<QQ11Ii")
_INFO_EXIT = 1 << 3


class ExitWatch:
    """Remembers the exit codes of the processes it was told to watch (negative: the signal)."""

    def __init__(self) -> None:
        self._codes: dict[int, int | None] = {}
        self._pidfds: dict[int, int] = {}  # pidfd -> pid
        self._poll = select.poll()
        self._wake, self._waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._poll.register(self._wake, select.POLLIN)
        self._thread = threading.Thread(target=self._run, name="ranklog-exits", daemon=True)
        self._closed = False
        self._seen = threading.Condition()  # an end was taken note of

    def watch(self, pid: int) -> None:
        """From now on; a process that is gone already stays unknown. Watching again does nothing."""
        if pid in self._codes or self._closed:
            return
        self._codes[pid] = None
        try:
            pidfd = os.pidfd_open(pid)
        except (OSError, AttributeError):  # gone, or a kernel before 5.3
            return
        self._pidfds[pidfd] = pid
        self._poll.register(pidfd, select.POLLIN)
        if self._thread.ident is None:
            self._thread.start()
        os.write(self._waker, b"x")  # poll began without it

    def code(self, pid: int) -> int | None:
        """How it ended, where that could be seen."""
        return self._codes.get(pid)

    def settle(self, pid: int, timeout_s: float) -> None:
        """Wait until the end of a process that is gone was taken note of."""
        with self._seen:
            self._seen.wait_for(lambda: pid not in self._pidfds.values(), timeout_s)

    def forget(self, pid: int) -> None:
        """Another process may come to have its number."""
        self._codes.pop(pid, None)

    def close(self) -> None:
        """Stop watching."""
        self._closed = True
        os.write(self._waker, b"x")
        if self._thread.ident is not None:
            self._thread.join()
        for fd in (*self._pidfds, self._wake, self._waker):
            os.close(fd)
        self._pidfds.clear()

    def _run(self) -> None:
        while not self._closed:
            for fd, _ in self._poll.poll():
                if fd == self._wake:
                    with contextlib.suppress(BlockingIOError):
                        os.read(fd, 4096)
                elif (pid := self._pidfds.get(fd)) is not None:
                    status = _status(pid, fd)
                    if status is not None:
                        self._codes[pid] = os.waitstatus_to_exitcode(status)
                    self._poll.unregister(fd)
                    with self._seen:
                        del self._pidfds[fd]
                        self._seen.notify_all()
                    os.close(fd)


def _status(pid: int, pidfd: int) -> int | None:
    """The wait status of a process that has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        if fields[0] == "Z":
            return int(fields[49])
    except (OSError, IndexError, ValueError):
        pass
    try:
        info = fcntl.ioctl(pidfd, _GET_INFO, _INFO.pack(_INFO_EXIT, 0, *[0] * 11, 0))
    except OSError:
        return None
    mask, *_, status = _INFO.unpack(info)
    return int(status) if mask & _INFO_EXIT else None


def has_writers(path: Path) -> bool:
    """Whether any process holds the file open for writing: a rank's children may outlive it.

    The kernel grants a read lease only on a file that nobody has open for writing. False too where
    that can't be asked (no file, a file system without leases).
    """
    # Who opens the file for writing amid this breaks the lease, of which SIGIO tells us.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGIO, signal.SIG_IGN)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(fd)
    return False
