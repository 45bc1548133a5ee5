"""Starts a program that is no child of ours: who waits for any child must not meet it, nor a zombie."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path


def start(
    command: Sequence[str],
    *,
    environ: Mapping[str, str] | None = None,
    stdout: int = subprocess.DEVNULL,
    stderr: int = subprocess.DEVNULL,
    keep: Sequence[int] = (),
) -> None:
    """Run in a session of its own; `keep`: descriptors it inherits. Raises OSError."""
    subprocess.run(
        ["/bin/sh", "-c", '"$@" &', "sh", *command],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
        env=dict(environ if environ is not None else python_environment()),
        pass_fds=tuple(keep),
        check=False,
    )


def python_environment() -> dict[str, str]:
    """For a Python of ours: it imports this very ranklog, and does not log itself."""
    package = str(Path(__file__).parents[2])
    paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "RANKLOG_DISABLED": "1"}


def python_command(module: str, *words: str) -> list[str]:
    """`python -m module words`, with the interpreter that runs us."""
    return [sys.executable, "-m", module, *words]
