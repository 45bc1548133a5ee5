"""Who writes to a file: the processes that have it open, and what their variables say of them."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ranklog.produce.identity import Identity, Surroundings, identify
from ranklog.produce.spool import process_start
from ranklog.produce.surroundings import launcher_of

Inode = tuple[int, int]  # device, inode


@dataclass(frozen=True, slots=True)
class Writer:
    """A process, as it was started."""

    pid: int
    start: str
    environ: dict[str, str] = field(default_factory=dict)
    script: str = ""
    launcher: str = ""

    @property
    def is_rank(self) -> bool:
        """Whether a launcher told it a rank."""
        return self.identity("").rank is not None

    def identity(self, host: str) -> Identity:
        """Who it is; as its own `init` would say."""
        return identify(self.environ, Surroundings(host, self.script, self.launcher))


def writers_of(
    inodes: Container[Inode], host: str, proc: Path = Path("/proc")
) -> dict[Inode, Writer]:
    """For each file the process that is most likely its rank: one that has a rank, the oldest."""
    found: dict[Inode, list[int]] = {}
    for pid in _own_processes(proc):
        for inode in _open_for_writing(proc / str(pid)):
            if inode in inodes:
                found.setdefault(inode, []).append(pid)
    known: dict[int, Writer | None] = {}
    chosen: dict[Inode, Writer] = {}
    for inode, pids in found.items():
        for pid in pids:
            if pid not in known:
                known[pid] = _writer(proc, pid, host)
        writers = [one for pid in pids if (one := known[pid]) is not None]
        writers.sort(key=lambda one: (not one.is_rank, int(one.start or 0)))
        if writers:
            chosen[inode] = writers[0]
    return chosen


def _own_processes(proc: Path) -> Iterator[int]:
    uid = os.getuid()
    for entry in os.scandir(proc):
        if entry.name.isdecimal() and entry.name != str(os.getpid()):
            with contextlib.suppress(OSError):
                if uid in (0, entry.stat().st_uid):
                    yield int(entry.name)


def _open_for_writing(process: Path) -> Iterator[Inode]:
    """Regular files. What goes while we look is not there."""
    try:
        numbers = os.listdir(process / "fd")
    except OSError:
        return
    for number in numbers:
        with contextlib.suppress(OSError, ValueError, StopIteration):
            status = os.stat(process / "fd" / number)
            if not stat.S_ISREG(status.st_mode):
                continue
            lines = (process / "fdinfo" / number).read_text().splitlines()
            flags = next(line for line in lines if line.startswith("flags:"))
            if int(flags.split()[1], 8) & os.O_ACCMODE != os.O_RDONLY:
                yield status.st_dev, status.st_ino


def _writer(proc: Path, pid: int, host: str) -> Writer | None:
    try:
        raw = (proc / str(pid) / "environ").read_bytes().decode("utf-8", "surrogateescape")
        words = (proc / str(pid) / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    except OSError:
        return None
    pairs = (item.partition("=") for item in raw.split("\0") if "=" in item)
    script = next((word for word in words if word.endswith(".py")), words[0])
    return Writer(
        pid,
        process_start(pid),
        {name: value for name, _, value in pairs},
        script,
        launcher_of(pid, host, proc=proc)[0],
    )
