"""Starts the agent of a spool where none works. It is nobody's child and outlives the job.

One agent works a spool, and sends to one place: a job that sends elsewhere has a spool of its own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ranklog.produce import spool

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
    """The usual folder, or one beside it where an agent works that sends elsewhere."""
    folder = spool.default_spool(environ)
    if destination is None or environ.get("RANKLOG_SPOOL"):
        return folder
    other = spool.agents_destination(folder)
    return folder if other in ("", destination) else spool.beside(folder, destination)


def _kind(destination: str) -> str:
    kind, colon, _ = destination.partition(":")
    is_kind = colon and kind[:1].isalpha() and kind.isascii() and "/" not in kind
    return kind.lower() if is_kind else ""
