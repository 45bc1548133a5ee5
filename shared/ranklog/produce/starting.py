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
    kind, name = _kind(destination), destination.partition(":")[2]
    if kind == "store":
        return _is_store(name)
    if kind in ("s3", "file"):
        return destination.startswith(f"{kind}://")
    return kind in KINDS if kind else bool(destination.strip())


def _is_store(name: str) -> bool:
    """What `store.open.scheme_of` takes, whose package no training process imports."""
    if "://" in name:
        return name.startswith(("file://", "s3://"))
    kind = _kind(name)
    is_address = kind in KINDS or (kind and name.startswith("/", len(kind) + 1))
    return bool(name.strip()) and not is_address


def resolved(destination: str) -> str:
    """A directory's name that means the same from wherever an agent is started."""
    kind = _kind(destination)
    if not destination.strip():
        return "store:"  # of no name: the agent says so
    if not kind:
        return os.path.abspath(destination)
    name = destination.partition(":")[2]
    is_folder = kind == "store" and _is_store(name) and not name.startswith(("s3:", "file:"))
    return f"store:{os.path.abspath(name)}" if is_folder else destination


def spool_of(destination: str | None, environ: Mapping[str, str]) -> Path:
    """The usual folder, or one beside it where that is another destination's. Changes nothing."""
    folder = spool.default_spool(environ)
    if environ.get("RANKLOG_SPOOL") or not folder.is_dir():
        return folder
    return _own(folder, _name(destination), spool.whose(folder))


def take_spool(destination: str | None, environ: Mapping[str, str]) -> Path:
    """`spool_of`, whose folder is now of this destination; who comes with another one sees it."""
    folder, name = spool.default_spool(environ), _name(destination)
    is_named = bool(environ.get("RANKLOG_SPOOL"))
    if is_named and not name:
        return folder
    chosen = folder
    with contextlib.suppress(OSError):  # told by who needs to write there
        spool.make_spool(folder)
        with _one_at_a_time(folder):
            whose = spool.whose(folder)
            chosen = folder if is_named else _own(folder, name, whose)
            if name and environ.get("LOCAL_RANK", "0") in ("", "0"):
                _tell_left(folder, whose, name, is_sent=chosen == folder)
            if chosen == folder and not is_named:
                spool.say_whose(folder, name)
    return chosen


def _name(destination: str | None) -> str:
    return "" if destination is None else resolved(destination)


def _own(folder: Path, name: str, whose: str) -> Path:
    """The folder where it is of that destination, or free; else another one. No destination is one, too."""
    if whose == name:
        return folder
    is_theirs = spool.has_collector(folder) or spool.is_anyone_alive(folder)
    if whose:
        said_s = spool.said_whose_s(folder)
        is_theirs = is_theirs or spool.has_left(folder) or time.time() - said_s < ANNOUNCED_S
    return spool.beside(folder, name) if is_theirs else folder


def _tell_left(folder: Path, whose: str, name: str, *, is_sent: bool) -> None:
    """What becomes of lines that a job of before left there for another destination, or for none."""
    if (
        whose == name
        or not spool.has_left(folder)
        or spool.has_collector(folder)
        or spool.is_anyone_alive(folder)
    ):
        return
    of = f"for {whose}" if whose else "of jobs without a destination"
    then = f"they are sent to {name}, too" if is_sent else f"ranklog replay {folder} sends them"
    trouble.once("left", f"lines of before, {of}, wait in {folder}: {then}")


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
