"""The tests of what has two forms, once more over the Python one, where the compiled one was built."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ranklog.produce.compiled import hot

ROOT = Path(__file__).parents[2]
TWICE = [
    "test_bridges.py",
    "test_context.py",
    "test_fast_log.py",
    "test_producer.py",
    "test_ring.py",
    "test_telemetry.py",
]


@pytest.mark.skipif(hot is None, reason="these tests ran over the Python form")
@pytest.mark.parametrize("name", TWICE)
def test_the_python_form_passes_too(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"tests/produce/{name}"],
        env={**os.environ, "RANKLOG_COMPILED": "0"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )

    assert done.returncode == 0, done.stdout
