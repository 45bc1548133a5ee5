"""Much at once, in real processes with a real agent: bursts, many threads, many ranks on a small tmpfs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.reading import streams_in
from tests.produce.test_capture import Job

BURST, THREADS, EACH = 100_000, 64, 300
RANKS, RANK_LINES = 8, 2_000


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """With rings of its own: what all of a user's take together is bounded."""
    made = Job(tmp_path)
    made.environ["RANKLOG_RINGS"] = str(tmp_path / "rings")
    return made


def dropped(job: Job) -> int:
    return sum(drop.lines for entry in streams_in(job.stream) for drop in entry.drops)


def test_a_burst_of_a_hundred_thousand_lines_is_all_there_in_order(job: Job) -> None:
    """As fast as a loop can; the ring holds what the agent has not read yet."""
    done = job.run(
        "import logging, ranklog\n"
        "ranklog.init(run='r')\n"
        "log = logging.getLogger('lib')\n"
        f"for n in range({BURST}): log.info('line %d', n)\n"
        "log.warning('the last')\n"
    )

    assert done.returncode == 0
    assert dropped(job) == 0
    lines = sorted(job.lines("logging"), key=lambda line: line.seq)  # the warning may be sent first
    assert [line.seq for line in lines] == list(range(BURST + 1))
    assert [line.text for line in lines] == [*(f"line {n}" for n in range(BURST)), "the last"]


def test_sixty_four_threads_at_once_lose_nothing_and_keep_their_order(job: Job) -> None:
    done = job.run(
        "import logging, sys, threading, ranklog\n"
        "ranklog.init(run='r')\n"
        "sys.setswitchinterval(1e-5)\n"
        f"start = threading.Barrier({THREADS})\n"
        "def work(t):\n"
        "    start.wait()\n"
        "    with ranklog.context(rank=t):\n"
        f"        for n in range({EACH}): logging.info('thread %d line %d', t, n)\n"
        f"threads = [threading.Thread(target=work, args=(t,)) for t in range({THREADS})]\n"
        "[thread.start() for thread in threads]\n"
        "[thread.join() for thread in threads]\n"
    )
    lines = sorted(job.lines("logging"), key=lambda line: line.seq)

    assert done.returncode == 0
    assert dropped(job) == 0
    said: dict[int | None, list[str]] = {}
    for line in lines:
        said.setdefault(line.rank, []).append(line.text)
    assert said == {t: [f"thread {t} line {n}" for n in range(EACH)] for t in range(THREADS)}
    assert [line.seq for line in lines] == list(range(THREADS * EACH))


@pytest.fixture
def small_shm(tmp_path: Path) -> Iterator[Path]:
    """A tmpfs of 64 MiB, as containers have for /dev/shm, where we may mount one."""
    target = tmp_path / "shm"
    target.mkdir()
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64m", "none", str(target)],
        capture_output=True,
        check=False,
    )
    if not mounted or mounted.returncode:
        pytest.skip("may not mount a small tmpfs")
    yield target
    subprocess.run(["umount", "-l", str(target)], check=True)


def test_eight_ranks_share_the_tmpfs_of_a_container_and_none_dies_of_it(
    job: Job, small_shm: Path
) -> None:
    """Three rings of full size would fit; the others are smaller, or on the disk, and so are those
    that met each other while they were made. Nothing is a bus error."""
    program = (
        "import logging, os, sys, ranklog\n"
        "ranklog.init(run='r')\n"
        "logging.info('begins'); print('ready', flush=True); sys.stdin.readline()\n"
        f"for n in range({RANK_LINES}): logging.info('rank %s line %d', os.environ['RANK'], n)\n"
    )
    environ = job.environ | {"RANKLOG_RINGS": str(small_shm / "rings"), "WORLD_SIZE": str(RANKS)}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            env=environ | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for rank in range(RANKS)
    ]
    for one in ranks:
        assert one.stdout is not None
        assert one.stdout.readline() == b"ready\n"
    rings = [path.stat().st_size >> 20 for path in small_shm.rglob("*.ring")]
    used = os.statvfs(small_shm)
    filler = small_shm / "filler"  # and then the job itself takes the rest of it
    filler.write_bytes(bytes(used.f_bavail * used.f_frsize))
    ends = [one.communicate(b"\n", timeout=60) for one in ranks]
    job.wait_delivered()

    assert [one.returncode for one in ranks] == [0] * RANKS, ends
    assert 16 < sum(rings) <= 64
    said = Counter((line.rank, line.text) for line in job.lines("logging"))
    assert set(said.values()) == {1}
    assert len(said) == RANKS * (RANK_LINES + 1)
    assert dropped(job) == 0
