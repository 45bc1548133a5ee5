"""Starts the agent of a spool where none works. It is nobody's child and outlives the job.

One agent works a spool, and sends to one place: a job that sends elsewhere has a spool of its own.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from ranklog.produce import spool, trouble

# Who took a spool has announced its first process by then.
ANNOUNCED_S = 10.0
KINDS = ("file", "http", "https", "kinesis", "s3", "store")
KINDS_NAMED = "a directory, file:///…, kinesis://STREAM, https://…, s3://bucket or store:DIR"


def ensure_agent(folder: Path, destination: str | None) -> None:
    """Start one that sends to `destination`, unless one is there. Raises OSError."""
    if destination is not None and not spool.has_collector(folder):
        from ranklog.produce import detached  # only who starts an agent needs it

        detached.start(detached.python_command("ranklog.agent", str(folder), destination))


def is_known_kind(destination: str) -> bool:
    """Whether an agent would know what to do with it."""
    kind = _kind(destination)
    return not kind or kind in KINDS


def resolved(destination: str) -> str:
    """A directory's name that means the same from wherever an agent is started."""
    kind = _kind(destination)
    if not kind:
        return os.path.abspath(destination)
    name = destination.partition(":")[2]
    is_folder = kind == "store" and name and not name.startswith(("s3:", "file:"))
    return f"store:{os.path.abspath(name)}" if is_folder else destination


def spool_of(destination: str | None, environ: Mapping[str, str]) -> Path:
    """The usual folder, or one beside it where that is another destination's. Changes nothing."""
    folder = spool.default_spool(environ)
    if destination is None or environ.get("RANKLOG_SPOOL"):
        return folder
    return _own(folder, resolved(destination), spool.whose(folder))


def take_spool(destination: str | None, environ: Mapping[str, str]) -> Path:
    """`spool_of`, whose folder is now of this destination; who comes with another one sees it."""
    folder = spool.default_spool(environ)
    if destination is None or environ.get("RANKLOG_SPOOL"):
        return folder
    destination = resolved(destination)
    with contextlib.suppress(OSError):  # told by who needs to write there
        spool.make_spool(folder)
        with _one_at_a_time(folder):
            chosen = _own(folder, destination, whose := spool.whose(folder))
            if chosen == folder:
                spool.say_whose(folder, destination)
            elif not spool.has_collector(folder) and spool.has_left(folder):
                trouble.once(
                    "left",
                    f"lines of before wait in {folder} for {whose}; "
                    f"ranklog replay {folder} --destination … sends them",
                )
        return chosen
    return folder


def _own(folder: Path, destination: str, whose: str) -> Path:
    if whose in ("", destination):
        return folder
    is_theirs = (
        spool.has_collector(folder)
        or spool.has_left(folder)
        or time.time() - spool.said_whose_s(folder) < ANNOUNCED_S
    )
    return spool.beside(folder, destination) if is_theirs else folder


@contextlib.contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    fd = spool.open_append(folder / "taking.lock")
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _kind(destination: str) -> str:
    kind, colon, _ = destination.partition(":")
    is_kind = colon and kind[:1].isalpha() and kind.isascii() and "/" not in kind
    return kind.lower() if is_kind else ""
