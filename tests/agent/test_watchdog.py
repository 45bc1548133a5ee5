"""Who starts the agent again, and when not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import ranklog

PACKAGE = str(Path(ranklog.__file__).parents[1])
PROGRAM = """import os, signal, sys, time
from pathlib import Path
from ranklog.agent import watchdog
watchdog.PAUSE_S = 0.01
log = Path(sys.argv[1])
def work():
    with log.open('a') as file:
        file.write('x')
    times = len(log.read_text())
    {work}
sys.exit(watchdog.keep_alive(work, lambda: {needed}))
"""
KILLED = "os.kill(os.getpid(), signal.SIGKILL)"


@pytest.mark.parametrize(
    ("work", "needed", "times", "code"),
    [
        ("return 0", "True", 1, 0),
        ("return 2", "True", 1, 2),
        (f"return 0 if times == 3 else {KILLED}", "True", 3, 0),
        (f"return {KILLED}", "False", 1, 0),
        ("raise ValueError('a bug')", "True", 1, 70),
    ],
)
def test_what_a_signal_ended_is_started_again_while_it_is_needed(
    tmp_path: Path, work: str, needed: str, times: int, code: int
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(work=work, needed=needed), str(tmp_path / "log")],
        env={**os.environ, "PYTHONPATH": PACKAGE},
        capture_output=True,
        timeout=30,
        check=False,
    )

    assert done.returncode == code, done.stderr
    assert (tmp_path / "log").read_text() == "x" * times


def test_a_termination_is_passed_on_and_nothing_is_started_after_it(tmp_path: Path) -> None:
    work = "print('works', flush=True); time.sleep(30)"
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(work=work, needed="True"), str(tmp_path / "log")],
        env={**os.environ, "PYTHONPATH": PACKAGE},
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"works\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert (tmp_path / "log").read_text() == "x"
