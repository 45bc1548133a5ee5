"""Starts the agent of a spool where none works. It is nobody's child and outlives the job."""

from __future__ import annotations

from pathlib import Path

from ranklog.produce import detached, spool


def ensure_agent(folder: Path, destination: str | None) -> None:
    """Start one that sends to `destination`, unless one is there. Raises OSError."""
    if destination is not None and not spool.has_collector(folder):
        detached.start(detached.python_command("ranklog.agent", str(folder), destination))
