"""`ranklog serve` in several processes: one socket, nobody left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ranklog.api.workers import built_when_asked

pytestmark = pytest.mark.skipif(not Path("/proc/self").exists(), reason="reads /proc")


def children(pid: int) -> list[int]:
    return [int(n) for n in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def health(url: str) -> str:
    with urllib.request.urlopen(f"{url}/v1/health", timeout=20) as answer:
        return str(json.load(answer)["status"])


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [sys.executable, "-m", "ranklog.cli.main", "serve", "--store", str(tmp_path / "s")]
    command += ["--listen", "127.0.0.1:0", "--workers", "2", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process, json.loads(process.stdout.readline())["url"]
        process.kill()


def test_a_worker_that_is_killed_has_a_successor(
    served: tuple[subprocess.Popen[str], str],
) -> None:
    process, url = served
    until(lambda: len(children(process.pid)) == 2)
    before = children(process.pid)
    os.kill(before[0], signal.SIGKILL)
    assert health(url) == "ok"
    until(lambda: len(set(children(process.pid)) - set(before)) == 1)
    assert health(url) == "ok"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGKILL, -9)])
def test_no_worker_outlives_its_parent(
    served: tuple[subprocess.Popen[str], str], number: int, code: int
) -> None:
    process, url = served
    assert health(url) == "ok"
    workers = children(process.pid)
    process.send_signal(number)
    assert process.wait(20) == code
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))


def test_a_process_builds_its_handler_once() -> None:
    built = []

    def build() -> Callable[[dict[str, object], object], dict[str, object]]:
        built.append(1)
        return lambda event, context: {"event": event}

    handler = built_when_asked(build)
    assert [handler({"n": 1}, None), handler({"n": 2}, None)] == [
        {"event": {"n": 1}},
        {"event": {"n": 2}},
    ]
    assert built == [1]
