"""How a process ended, as its parent tells the agent: `<incarnation>.exit` in the spool, JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path

from ranklog.produce import spool
from ranklog.produce.clock import now_ns


def write_exit(folder: Path, incarnation: str, code: int) -> None:
    """Tell the exit code (negative: the signal). Whole or not at all; raises OSError."""
    partial = folder / f".{incarnation}.{os.getpid()}.partial"
    with os.fdopen(spool.open_append(partial), "w") as file:
        json.dump({"code": code, "ns": now_ns()}, file)
    partial.rename(exit_path(folder, incarnation))


def read_exit(folder: Path, incarnation: str) -> int | None:
    """The exit code, or None where nobody told it (yet)."""
    try:
        code = json.loads(exit_path(folder, incarnation).read_text())["code"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return code if isinstance(code, int) else None


def exit_path(folder: Path, incarnation: str) -> Path:
    """Where it stands."""
    return folder / f"{incarnation}.exit"
