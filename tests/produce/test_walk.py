"""Every public function a job calls, with the agent stopped, the ring full and the disk full: none
costs the calling thread a millisecond, none raises, only `flush` and `close` wait, to their time-out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ranklog
from tests.produce.walking import PUBLIC, WAIT_S

# Of the calling thread's processor time.
CALL_MS_MAX = 1.0
# Nothing waits for anybody: far above what a busy machine does to a thread, far below a time-out.
STALL_MS_MAX = 2_000.0
# Names that are no calls of a job, or are walked as what waits.
NOT_WALKED = {"Client", "__version__", "flush", "close"}


def test_every_public_name_is_walked() -> None:
    assert set(PUBLIC) | NOT_WALKED == set(ranklog.__all__)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own with 4 MiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m,mode=0700", "tmpfs", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, check=False)
    except OSError:
        pytest.skip("no mount here")
    if done.returncode:
        pytest.skip("mounting is not for us")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def walk(condition: str, **environ: str) -> dict[str, Any]:
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("RANKLOG_", "SLURM", "RANK"))
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.produce.walking", condition],
        env=kept | {"RANKLOG_RING_MIB": "1"} | environ,
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def check(found: dict[str, Any]) -> None:
    slow = {name: cpu for name, (cpu, _) in found["costs"].items() if cpu >= CALL_MS_MAX}
    assert slow == {}
    stalled = {name: wall for name, (_, wall) in found["costs"].items() if wall >= STALL_MS_MAX}
    assert stalled == {}
    for left, took_s in found["waits"].values():
        assert left > 0
        assert WAIT_S <= took_s + 0.05 < WAIT_S + STALL_MS_MAX / 1000
    assert max(wall for _, wall in found["after"].values()) < STALL_MS_MAX


def test_with_the_agent_stopped(tmp_path: Path) -> None:
    spool, out = str(tmp_path / "spool"), str(tmp_path / "out")

    check(walk("stopped", RANKLOG_SPOOL=spool, RANKLOG_DESTINATION=out))


def test_with_the_ring_full_and_nobody_to_read_it(tmp_path: Path) -> None:
    # A launcher is said to deliver, and none is there: whoever flushes waits in vain.
    check(walk("ring", RANKLOG_SPOOL=str(tmp_path / "spool"), RANKLOG_LAUNCHED="1"))


def test_with_the_disk_full(small_disk: Path) -> None:
    places = {"RANKLOG_SPOOL": str(small_disk), "RANKLOG_RINGS": str(small_disk / "rings")}

    check(walk("disk", RANKLOG_LAUNCHED="1", **places))
