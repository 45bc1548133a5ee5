"""Seconds of the soak."""

from __future__ import annotations

import subprocess
import sys


def test_a_short_soak_loses_doubles_and_undeletes_nothing() -> None:
    words = ["--minutes", "0.12", "--producers", "6", "--rate", "20", "--seed", "5", "--short"]
    command = [sys.executable, "-m", "tests.soak", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-2_000:]
    assert "lost 0, doubled 0, invented 0, undeleted 0" in done.stdout
