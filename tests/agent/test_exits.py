from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ranklog.agent.exits import ExitWatch, has_writers
from ranklog.produce.exits import read_exit, write_exit


@pytest.mark.parametrize(
    ("end", "code"), [("exit(7)", 7), ("exit()", 0), ("__import__('os').abort()", -6)]
)
def test_an_exit_is_seen_before_the_parent_asks_for_it(end: str, code: int) -> None:
    watch = ExitWatch()
    child = subprocess.Popen([sys.executable, "-c", f"input(); {end}"], stdin=subprocess.PIPE)
    watch.watch(child.pid)
    assert watch.code(child.pid) is None
    assert child.stdin is not None
    child.stdin.write(b"\n")
    child.stdin.close()
    _wait_for(watch, child.pid)

    assert watch.code(child.pid) == code
    assert child.wait() == code
    watch.close()


def test_a_process_that_is_gone_stays_unknown() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    watch = ExitWatch()
    watch.watch(child.pid)

    assert watch.code(child.pid) is None
    watch.close()


def test_a_file_has_writers_as_long_as_anybody_may_write_to_it(tmp_path: Path) -> None:
    path = tmp_path / "out"
    reading, writing = os.pipe()
    with path.open("ab") as file:
        child = subprocess.Popen(
            ["sh", "-c", "exec 3<&0; cat <&3 & exit 0"], stdin=reading, stdout=file
        )
        os.close(reading)
    child.wait()

    assert has_writers(path)
    os.close(writing)
    while has_writers(path):
        time.sleep(0.01)
    assert not has_writers(tmp_path / "none")


def test_what_a_parent_tells_is_read_back(tmp_path: Path) -> None:
    assert read_exit(tmp_path, "i") is None
    write_exit(tmp_path, "i", -9)
    assert read_exit(tmp_path, "i") == -9
    assert [path.name for path in tmp_path.iterdir()] == ["i.exit"]


def _wait_for(watch: ExitWatch, pid: int) -> None:
    while watch.code(pid) is None:
        time.sleep(0.01)
