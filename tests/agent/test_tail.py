"""Files of a job that we did not start: followed however they grow, each as its rank's stream."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ranklog.agent import tail as tail_module
from ranklog.agent.collector import Collector, Options
from ranklog.agent.mask import Masker
from ranklog.agent.tail import Tail, TailStreams
from ranklog.agent.writers import writers_of
from ranklog.importer.paths import rank_by_pattern
from ranklog.stream.disk import DiskStream
from tests.agent.reading import Seen, lines_in, streams_in


class Follower:
    """An agent that follows a folder, look by look."""

    def __init__(self, tmp_path: Path, tail: Tail) -> None:
        self.stream = tmp_path / "stream"
        self._spool = tmp_path / "spool"
        self._spool.mkdir(exist_ok=True)
        self.streams = TailStreams([tail], Masker())
        self.collector = Collector(
            self._spool, DiskStream(self.stream, sync=False), Options(tail=self.streams), boot="b"
        )

    def look(self) -> list[str]:
        """All texts so far, after another look."""
        while self.collector.poll(hurry=False):
            pass
        self.collector.poll()
        return [line.text for line in self._lines()]

    def finish(self) -> list[Seen]:
        self.collector.finish(5.0)
        return self._lines()

    def _lines(self) -> list[Seen]:
        return lines_in(self.stream) if self.stream.exists() else []


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail_module, "LOOK_NS", 0)
    monkeypatch.setattr("ranklog.agent.collector.FRAME_AGE_NS", 0)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    return folder


@dataclass
class Process:
    """A program that has a file open, as a rank has its log."""

    child: subprocess.Popen[bytes]

    def end(self, code: int) -> None:
        self.child.communicate(b"%d\n" % code)


@pytest.fixture
def rank() -> Iterator[type]:
    started: list[subprocess.Popen[bytes]] = []

    class Rank(Process):
        def __init__(self, path: Path, **environ: str) -> None:
            path.parent.mkdir(parents=True, exist_ok=True)
            program = "import os, sys; print('started', flush=True); os._exit(int(input()))"
            with path.open("wb") as file:
                child = subprocess.Popen(
                    [sys.executable, "-c", program],
                    stdin=subprocess.PIPE,
                    stdout=file,
                    env={**os.environ, **environ},
                )
            started.append(child)
            super().__init__(child)
            while not path.stat().st_size:
                pass

    yield Rank
    for child in started:
        child.kill()
        child.wait()
        if child.stdin is not None:
            child.stdin.close()


def torchrun_variables(rank: int) -> dict[str, str]:
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank % 2),
        "WORLD_SIZE": "4",
        "TORCHELASTIC_RUN_ID": "job7",
        "TORCHELASTIC_RESTART_COUNT": "1",
    }


def test_a_file_that_grows_is_followed_and_ends_with_us(tmp_path: Path, logs: Path) -> None:
    follower = Follower(tmp_path, Tail(str(logs), run="r", launch="l", host="n0"))
    path = logs / "rank_3.log"
    path.write_text("one\ntw")
    assert follower.look() == ["one"]
    with path.open("a") as file:
        file.write("o\nthree")
    assert follower.look() == ["one", "two"]
    lines = follower.finish()

    assert [(line.text, line.rank, line.channel) for line in lines] == [
        ("one", 3, "rank_3.log"),
        ("two", 3, "rank_3.log"),
        ("three", 3, "rank_3.log"),
    ]
    [last] = [entry for entry in streams_in(follower.stream) if entry.end]
    assert (last.stream.run, last.stream.launch, last.stream.source) == ("r", "l", str(path))
    assert path.read_text() == "one\ntwo\nthree"


def test_rotated_truncated_and_new_files_lose_nothing(tmp_path: Path, logs: Path) -> None:
    follower = Follower(tmp_path, Tail(str(logs / "*.log"), run="r", launch="l"))
    path = logs / "a.log"
    path.write_text("before rotation\n")
    follower.look()
    with path.open("a") as file:
        file.write("last of the old\n")
    path.rename(logs / "a.log.1")
    path.write_text("first of the new\n")
    (logs / "b.log").write_text("another\n")
    follower.look()
    path.write_text("short\n")  # truncated and written anew
    lines = follower.finish()

    assert sorted(line.text for line in lines) == [
        "another",
        "before rotation",
        "first of the new",
        "last of the old",
        "short",
    ]
    assert len({line.incarnation for line in lines}) == 4


def test_an_agent_that_starts_anew_goes_on(tmp_path: Path, logs: Path) -> None:
    tail = Tail(str(logs), run="r", launch="l")
    path = logs / "a.log"
    path.write_text("one\n")
    first = Follower(tmp_path, tail)
    first.look()
    first.collector.close()
    with path.open("a") as file:
        file.write("two\n")
    lines = Follower(tmp_path, tail).finish()

    assert [(line.text, line.seq) for line in lines] == [("one", 0), ("two", 1)]
    assert len({line.incarnation for line in lines}) == 1


def test_who_writes_a_file_tells_its_rank_and_how_it_ended(
    tmp_path: Path, logs: Path, rank: type
) -> None:
    folder = logs / "job7_abc" / "attempt_1"
    processes = [
        rank(folder / str(n) / "stdout.log", **torchrun_variables(2 + n)) for n in range(2)
    ]
    (folder / "0" / "stderr.log").write_text("of nobody who runs\n")
    follower = Follower(tmp_path, Tail(str(logs), host="n1"))
    follower.look()
    for process, code in zip(processes, (0, 7), strict=True):
        process.end(code)
    follower.look()
    seen = {(line.rank, line.channel, line.text) for line in follower.finish()}

    assert seen == {
        (2, "stdout", "started"),
        (3, "stdout", "started"),
        (2, "stderr", "of nobody who runs"),
    }
    ends = {
        (entry.stream.rank, entry.stream.channel): entry.end.exit_code
        for entry in streams_in(follower.stream)
        if entry.end
    }
    assert ends == {(2, "stdout"): 0, (3, "stdout"): 7, (2, "stderr"): None}
    [who] = {
        (s.launch, s.attempt, s.host, s.world_size)
        for s in (entry.stream for entry in streams_in(follower.stream))
    }
    assert who == ("job7", 1, "n1", 4)


def test_a_rank_by_expression_is_as_told(tmp_path: Path, logs: Path) -> None:
    (logs / "worker-05.txt").write_text("x\n")
    rank_from = rank_by_pattern(r"worker-(\d+)")
    follower = Follower(tmp_path, Tail(str(logs), run="r", launch="l", rank_from=rank_from))

    assert [line.rank for line in follower.finish()] == [5]


def test_tracebacks_are_groups_and_progress_is_its_last_state(tmp_path: Path, logs: Path) -> None:
    (logs / "a.log").write_bytes(
        b"10%\r20%\n[rank1]: Traceback (most recent call last):\n"
        b'[rank1]:   File "a.py", line 1\n[rank1]: ValueError: bad\nafter\n'
    )
    lines = Follower(tmp_path, Tail(str(logs), run="r", launch="l")).finish()

    assert [(line.text[-7:], line.level, line.group) for line in lines] == [
        ("20%", None, None),
        (" last):", 40, 1),
        (" line 1", 40, 1),
        ("or: bad", 40, 1),
        ("after", None, None),
    ]


def test_of_the_writers_of_a_file_the_rank_is_chosen(tmp_path: Path, rank: type) -> None:
    path = tmp_path / "out.log"
    rank(path, RANK="", SLURM_PROCID="")
    process = rank(path, RANK="5")
    status = path.stat()
    [writer] = writers_of({(status.st_dev, status.st_ino)}, "n0").values()

    assert (writer.pid, writer.identity("n0").rank) == (process.child.pid, 5)
