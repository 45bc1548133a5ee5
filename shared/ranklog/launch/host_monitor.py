"""The monitor of this host beside a job: a process of its own, that ends when the job does."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator, Mapping

END_S = 5.0


@contextlib.contextmanager
def monitored(environ: Mapping[str, str]) -> Iterator[None]:
    """Readings of the host while the block runs. Never fails: a job without readings is a job."""
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "ranklog.hardware"],
            env=dict(environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # a terminal's Ctrl-C is the job's
        )
    except OSError as error:
        print(f"ranklog: the machine is not monitored: {error}", file=sys.stderr)
        yield
        return
    try:
        yield
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
