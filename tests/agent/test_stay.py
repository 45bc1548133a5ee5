"""An agent that is to stay: beside containers that come and go, each with processes of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ranklog.cli.main import main
from ranklog.produce import spool
from tests.agent.reading import lines_in

PROGRAM = """
import logging, ranklog, sys, time
ranklog.init(run="r", rank=0, world_size=1, spool_dir=sys.argv[1], destination=sys.argv[2])
for number in range(int(sys.argv[3])):
    logging.warning("line %d", number)
    time.sleep(0.02)
"""
LINES = 100
UNSHARE = ["unshare", "--pid", "--fork", "--mount-proc"]


def can_unshare() -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode == 0


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def texts(out: Path) -> list[str]:
    return [line.text for line in lines_in(out) if line.text.startswith("line ")]


@contextmanager
def agent(tmp_path: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "ranklog.cli.main", "agent", "--stay", *words]
    command += ["--spool", str(tmp_path / "spool"), "--destination", str(tmp_path / "out")]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        try:
            until(lambda: (tmp_path / "spool").is_dir() and spool.has_collector(tmp_path / "spool"))
            yield process
        finally:
            process.kill()


def rank(tmp_path: Path, *before: str) -> list[str]:
    words = [str(tmp_path / "spool"), str(tmp_path / "out"), str(LINES)]
    return [*before, sys.executable, "-c", PROGRAM, *words]


def test_it_waits_for_the_first_rank_and_for_the_next_until_it_is_told_to_stop(
    tmp_path: Path,
) -> None:
    with agent(tmp_path) as process:
        time.sleep(3.0)  # longer than an agent that nobody needs
        assert process.poll() is None
        for _ in range(2):
            subprocess.run(rank(tmp_path), check=True)
        until(lambda: len(texts(tmp_path / "out")) == 2 * LINES)
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


def test_a_second_one_takes_over_where_the_first_ends(tmp_path: Path) -> None:
    with agent(tmp_path) as first, agent(tmp_path) as second:
        first.kill()
        first.wait()
        subprocess.run(rank(tmp_path), check=True)
        until(lambda: len(texts(tmp_path / "out")) == LINES)
        assert second.poll() is None
        second.send_signal(signal.SIGTERM)
        assert second.wait(30) == 0


@pytest.mark.skipif(not can_unshare(), reason="may not make a pid namespace here")
def test_a_container_whose_processes_it_cannot_see_loses_no_line(tmp_path: Path) -> None:
    environ = os.environ | {"RANKLOG_RINGS": str(tmp_path / "rings")}
    (tmp_path / "rings").mkdir()
    with agent(tmp_path) as process:
        subprocess.run(rank(tmp_path, *UNSHARE), check=True, env=environ)
        until(lambda: len(texts(tmp_path / "out")) == LINES)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=30)
    assert b"another pid namespace" in said
    assert sorted(texts(tmp_path / "out")) == sorted(f"line {number}" for number in range(LINES))


def test_once_and_stay_exclude_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["agent", "--once", "--stay", "--destination", str(tmp_path / "out")]) == 2
    assert "--once ends" in capsys.readouterr().err
