from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ranklog.agent.endings import TOLD_S, Endings
from ranklog.produce import spool
from ranklog.produce.exits import write_exit
from ranklog.produce.identity import Identity
from ranklog.produce.spool import ProcessFiles

WHO = Identity("default", "r", "l", 0, "n0", 0, 0, 1)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def endings(tmp_path: Path, clock: Clock) -> Iterator[Endings]:
    made = Endings(tmp_path, clock)
    yield made
    made.close()


def described(pid: int, *, launched: bool, incarnation: str = "i") -> ProcessFiles:
    return ProcessFiles(WHO, incarnation, pid, spool.process_start(pid), {}, launched)


@pytest.fixture
def gone() -> ProcessFiles:
    """A process that was started by a launcher, and has ended."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    process = described(child.pid, launched=True)
    child.communicate(b"\n")
    return process


def test_a_process_that_runs_is_not_over(endings: Endings) -> None:
    assert not endings.is_over(described(os.getpid(), launched=False))


def test_what_its_parent_tells_is_waited_for_a_while(
    endings: Endings, gone: ProcessFiles, clock: Clock
) -> None:
    assert not endings.is_over(gone)
    clock.now += TOLD_S + 0.1

    assert endings.is_over(gone)
    assert endings.code(gone) is None


def test_in_a_hurry_nothing_is_waited_for(endings: Endings, gone: ProcessFiles) -> None:
    assert endings.is_over(gone, hurry=True)


def test_all_that_a_process_announced_ends_as_its_parent_told(
    endings: Endings, gone: ProcessFiles, tmp_path: Path
) -> None:
    write_exit(tmp_path, "i", -9)
    own_lines = ProcessFiles(WHO, "j", gone.pid, gone.start, {}, True)

    assert endings.is_over(gone)
    assert endings.is_over(own_lines)
    assert (endings.code(gone), endings.code(own_lines)) == (-9, -9)


def test_where_nobody_tells_the_kernel_shows_it(endings: Endings) -> None:
    child = subprocess.Popen([sys.executable, "-c", "input(); exit(3)"], stdin=subprocess.PIPE)
    process = described(child.pid, launched=False)
    assert not endings.is_over(process)
    child.communicate(b"\n")

    assert endings.is_over(process)
    assert endings.code(process) == 3


def test_a_number_that_another_process_gets_has_no_end_yet(endings: Endings) -> None:
    child = subprocess.Popen([sys.executable, "-c", "input(); exit(3)"], stdin=subprocess.PIPE)
    first = described(child.pid, launched=False)
    assert not endings.is_over(first)
    child.communicate(b"\n")
    assert endings.is_over(first)
    later = ProcessFiles(WHO, "j", child.pid, first.start + "1", {}, False)

    assert endings.code(later) is None
    assert endings.is_over(later)
    assert endings.code(later) is None


def test_a_process_of_another_pid_namespace_is_not_taken_for_dead(
    endings: Endings, gone: ProcessFiles, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = ProcessFiles(WHO, "k", gone.pid, f"{gone.start}@1", {}, False)

    assert not endings.is_over(elsewhere)
    assert not endings.is_over(elsewhere)
    assert capsys.readouterr().err.count("another pid namespace") == 1
    write_exit(tmp_path, "k", 7)
    assert endings.is_over(elsewhere) and endings.code(elsewhere) == 7


def test_a_process_of_this_namespace_is_known_by_its_whole_name() -> None:
    start = spool.announced_start(os.getpid())
    assert "@" in start and not spool.is_foreign(start)
    assert spool.is_alive(os.getpid(), start)
    assert not spool.is_alive(os.getpid(), "1@" + start.partition("@")[2])
