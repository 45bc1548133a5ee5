"""`ranklog tensorboard` over a store, and TensorBoard's own server beside it."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

WAIT_S = 60


@contextmanager
def provided(store: Path, run: str) -> Iterator[str]:
    """The address of TensorBoard's page over a run of the tenant `acme`."""
    scope = ["--store", str(store), "--tenant", "acme", "--run", run]
    provider = ["ranklog.cli.main", "tensorboard", *scope]
    with _process(provider, r"--grpc_data_provider=(\S+)") as address:
        board = ["tensorboard.main", "--host", "127.0.0.1", "--port", "0"]
        found = _process([*board, f"--grpc_data_provider={address}"], r"at (http://[\d.:]+)")
        with found as url:
            yield url


@contextmanager
def _process(words: list[str], pattern: str) -> Iterator[str]:
    """A process until the end of the block; what of its output the pattern's group matched."""
    process = subprocess.Popen(
        [sys.executable, "-m", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    try:
        said, ends_s = "", time.monotonic() + WAIT_S
        while not (found := re.search(pattern, said)) and time.monotonic() < ends_s:
            line = process.stdout.readline()
            assert line, said
            said += line
        assert found is not None, said
        yield found[1]
    finally:
        process.terminate()
        process.wait(10)
        process.stdout.close()
