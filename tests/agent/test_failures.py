"""What goes wrong around the agent: it is killed, the network is a hole, disks are full, logs are lost.

No line lost, none twice, the same seq: whoever reads (stream, seq) sees each line once.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import ranklog
from ranklog.agent import disk_space, ledger, sending
from ranklog.agent import wal as wal_module
from ranklog.agent.collector import Collector, Options
from ranklog.agent.replay import replay
from ranklog.agent.sending import Sender
from ranklog.agent.sinks import Frame, Outcome, RetryAfter, open_sink
from ranklog.agent.wal import Wal
from ranklog.agent.wal_segment import WalFrame
from ranklog.errors import BadInput, Unavailable
from ranklog.produce import spool
from ranklog.produce.identity import Identity
from ranklog.produce.spool import ProcessFiles
from ranklog.stream.disk import DiskStream
from tests.agent.reading import Seen, lines_in
from tests.bench.agent import SpoolOfRings

PACKAGE = str(Path(ranklog.__file__).parents[1])
KIB = 1024


def once(lines: Sequence[Seen]) -> list[Seen]:
    """By (stream, seq), as every reader sees them: what came twice must be the same line."""
    found: dict[tuple[str, str, int], Seen] = {}
    for line in lines:
        key = (line.incarnation, line.channel, line.seq)
        assert found.setdefault(key, line) == line
    return [found[key] for key in sorted(found)]


def texts(lines: Sequence[Seen], channel: str = "logging") -> list[str]:
    return [line.text for line in lines if line.channel == channel]


class Agent:
    """`python -m ranklog.agent` in a process of its own."""

    def __init__(self, folder: Path, destination: str, *words: str, **environ: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ranklog.agent", str(folder), destination, *words],
            env={**os.environ, "PYTHONPATH": PACKAGE, **environ},
            stderr=subprocess.PIPE,
            text=True,
        )

    @property
    def worker(self) -> int:
        """The process that does it; the one we started only starts it again. 0: not yet, or over."""
        pid = self.process.pid
        with contextlib.suppress(OSError, IndexError):
            return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
        return 0

    def kill(self) -> None:
        """Both, as a node's end does."""
        self.process.send_signal(signal.SIGSTOP)
        if worker := self.worker:
            os.kill(worker, signal.SIGKILL)
        self.process.kill()
        self.end()

    def end(self, timeout_s: float = 30.0) -> int:
        self.process.communicate(timeout=timeout_s)
        return self.process.returncode


@contextlib.contextmanager
def agent(folder: Path, destination: str, *words: str, **environ: str) -> Iterator[Agent]:
    one = Agent(folder, destination, *words, **environ)
    try:
        yield one
    finally:
        if one.process.poll() is None:
            one.kill()
        one.end()


def wait_until(met: object, timeout_s: float = 20.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not met():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.02)


def announce_text(folder: Path, name: str, data: bytes, pid: int | None = None) -> None:
    """A captured descriptor of this process (or of one that is gone)."""
    spool.make_spool(folder)
    (folder / f"{name}.stdout").write_bytes(data)
    who = Identity("default", "demo", "l1", 0, "n0", 3, 3, 8)
    pid, start = (os.getpid(), spool.process_start(os.getpid())) if pid is None else (pid, "1")
    spool.announce(folder, ProcessFiles(who, name, pid, start, {"stdout": f"{name}.stdout"}))


# --- killed and stopped ---------------------------------------------------------------------------


def test_an_agent_that_is_killed_again_and_again_loses_nothing_and_doubles_nothing(
    tmp_path: Path,
) -> None:
    folder, stream = tmp_path / "spool", tmp_path / "stream"
    one = SpoolOfRings(folder, ranks=2, ring_bytes=1 << 20)
    wanted: list[str] = []
    source = random.Random(4)
    for _ in range(5):
        lines = [f"line {len(wanted) + n} {'x' * source.randrange(200)}" for n in range(600)]
        with agent(folder, str(stream)) as running:
            one.texts(lines)
            wanted += lines
            time.sleep(source.uniform(0.3, 1.0))
            running.kill()
    one.close()
    collector = Collector(folder, DiskStream(stream, sync=False))
    assert collector.finish(10.0) == 0

    seen = once(lines_in(stream))
    assert sorted(texts(seen)) == sorted(wanted)
    for name in {line.incarnation for line in seen}:
        mine = [line.seq for line in seen if (line.incarnation, line.channel) == (name, "logging")]
        assert mine == list(range(len(mine)))


def test_killed_between_any_two_writes_the_next_agent_sends_the_same_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every write to the log may be the last one, and be cut short."""
    wanted = [f"line {n}" for n in range(40)]

    class Killed(BaseException):
        pass

    for cut in (0, 1, 40, 300):
        for survive in range(6):
            folder, stream = tmp_path / f"{cut}.{survive}", tmp_path / f"{cut}.{survive}.out"
            one = SpoolOfRings(folder, ranks=1, ring_bytes=1 << 20)
            writes = itertools.count()
            said = 0

            def dying(
                fd: int,
                data: bytes,
                at: int,
                cut: int = cut,
                last: int = survive,
                writes: Any = writes,
            ) -> None:
                if next(writes) >= last:
                    os.pwrite(fd, data[:cut], at)
                    raise Killed
                disk_space.write_whole(fd, data, at)

            with (
                monkeypatch.context() as patch,
                contextlib.suppress(Killed),
                contextlib.ExitStack() as stack,
            ):
                patch.setattr(wal_module, "write_whole", dying)
                collector = Collector(folder, DiskStream(stream, sync=False))
                stack.callback(collector.close)
                for start in range(0, 40, 10):
                    one.texts(wanted[start : start + 10])
                    said = start + 10
                    collector.poll(hurry=True)
            one.texts(wanted[said:])
            assert Collector(folder, DiskStream(stream, sync=False)).finish(5.0) == 0
            one.close()

            seen = once(lines_in(stream))
            assert [line.seq for line in seen if line.channel == "logging"] == list(range(40))
            assert texts(seen) == wanted


def test_an_agent_that_something_kills_is_there_again_in_two_seconds(tmp_path: Path) -> None:
    folder, stream = tmp_path / "spool", tmp_path / "stream"
    one = SpoolOfRings(folder, ranks=1, ring_bytes=1 << 20)
    with agent(folder, str(stream)) as running:
        one.texts(["before"])
        wait_until(lambda: texts(lines_in(stream)) == ["before"])
        first = running.worker
        os.kill(first, signal.SIGKILL)
        start = time.monotonic()
        wait_until(lambda: running.worker not in (0, first) and spool.has_collector(folder))
        assert time.monotonic() - start < 5.0  # two, and a busy machine
        one.texts(["after"])
        wait_until(lambda: texts(lines_in(stream)) == ["before", "after"])
        running.process.send_signal(signal.SIGTERM)
        assert running.end() == 0
    one.close()


def test_a_stopped_agent_holds_nobody_up_and_goes_on(tmp_path: Path) -> None:
    folder, stream = tmp_path / "spool", tmp_path / "stream"
    one = SpoolOfRings(folder, ranks=1, ring_bytes=1 << 20)
    one.texts(["before"])
    with agent(folder, str(stream)) as running:
        wait_until(lambda: texts(lines_in(stream)) == ["before"])
        os.kill(running.worker, signal.SIGSTOP)
        start = time.thread_time()
        one.texts(["during"] * 500)
        assert time.thread_time() - start < 1.0
        assert texts(lines_in(stream)) == ["before"]
        os.kill(running.worker, signal.SIGCONT)
        wait_until(lambda: len(lines_in(stream)) == 501)
    one.close()


def test_a_termination_sends_errors_and_ends_first_and_is_done_in_time(tmp_path: Path) -> None:
    class Slow:
        """Takes one frame, then no more: what would a node that is being shut down have sent?"""

        def __init__(self) -> None:
            self.seen: list[bytes] = []

        def put_all(self, frames: Sequence[Frame]) -> list[Outcome]:
            if self.seen:
                return [Outcome(Unavailable("gone"))] * len(frames)
            self.seen += [data for _, data in frames[:1]]
            return [Outcome()] + [Outcome(Unavailable("gone"))] * (len(frames) - 1)

    wal = Wal(tmp_path / "wal")
    wal.append([WalFrame(0, "k", b"info")], {})
    wal.append([WalFrame(2, "k", b"error")], {})
    slow = Slow()
    sender = Sender(wal, slow, tmp_path / "refused")
    sender.urgent_first = True
    sender.step()

    assert slow.seen == [b"error"]


def test_sigterm_ends_an_agent_whose_destination_is_a_black_hole(tmp_path: Path) -> None:
    folder = tmp_path / "spool"
    announce_text(folder, "f", b"one\n")
    with socket.socket() as hole:  # accepts in the backlog, and never answers
        hole.bind(("127.0.0.1", 0))
        hole.listen(8)
        with agent(folder, f"http://127.0.0.1:{hole.getsockname()[1]}") as running:
            wait_until(lambda: list((folder / "wal").glob("*.wal")))
            wait_until(lambda: (folder / "agent.status").exists())
            time.sleep(1.2)
            start = time.monotonic()
            running.process.send_signal(signal.SIGTERM)
            assert running.end(25.0) == 0
            assert time.monotonic() - start < 20.0
    stream = DiskStream(tmp_path / "stream", sync=False)
    Collector(folder, stream).finish(5.0)
    assert texts(lines_in(tmp_path / "stream"), "stdout") == ["one"]


# --- the network ----------------------------------------------------------------------------------


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_server_that_is_busy_for_minutes_is_asked_seldom_and_then_gets_everything_once(
    tmp_path: Path,
) -> None:
    class Busy:
        def __init__(self) -> None:
            self.asked_at: list[float] = []
            self.taken: list[bytes] = []

        def put_all(self, frames: Sequence[Frame]) -> list[Outcome]:
            self.asked_at.append(clock.now)
            if clock.now < 300.0:
                return [Outcome(Unavailable("503"))] * len(frames)
            self.taken += [data for _, data in frames]
            return [Outcome()] * len(frames)

    clock, busy, wal = Clock(), Busy(), Wal(tmp_path / "wal")
    sender = Sender(wal, busy, tmp_path / "refused", clock=clock, draw=lambda low, high: high)
    for n in range(20):
        wal.append([WalFrame(0, "k", b"%d" % n)], {})
    while not busy.taken and clock.now < 400:
        sender.step()
        clock.now += 0.1

    assert busy.taken == [b"%d" % n for n in range(20)]
    waits = [b - a for a, b in zip(busy.asked_at, busy.asked_at[1:], strict=False)]
    assert max(waits) <= sending.RETRY_MAX_S + 0.2
    assert len(busy.asked_at) < 25
    assert sender.failing_since is None


def test_a_server_is_not_asked_before_it_said_to(tmp_path: Path) -> None:
    class Later:
        def __init__(self) -> None:
            self.asked_at: list[float] = []

        def put_all(self, frames: Sequence[Frame]) -> list[Outcome]:
            self.asked_at.append(clock.now)
            if len(self.asked_at) > 1:
                return [Outcome()] * len(frames)
            return [Outcome(RetryAfter("429", 40.0), 40.0)] * len(frames)

    clock, later, wal = Clock(), Later(), Wal(tmp_path / "wal")
    wal.append([WalFrame(0, "k", b"x")], {})
    sender = Sender(wal, later, tmp_path / "refused", clock=clock, draw=lambda low, high: 0.0)
    while wal.unsent:
        sender.step()
        clock.now += 1.0

    assert later.asked_at == [0.0, 40.0]


def test_a_reset_connection_is_tried_again(tmp_path: Path) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(4)
        sink = open_sink(f"http://127.0.0.1:{server.getsockname()[1]}", {})
        wal = Wal(tmp_path / "wal")
        wal.append([WalFrame(0, "k", b"x")], {})
        sender = Sender(wal, sink, tmp_path / "refused", draw=lambda low, high: 0.0)
        pid = os.fork()
        if pid == 0:
            connection, _ = server.accept()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            connection.close()  # RST
            connection, _ = server.accept()
            connection.recv(65_536)
            connection.sendall(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
            connection.close()
            os._exit(0)
        assert not sender.step()
        assert "does not answer" in sender.last_error or "answered" in sender.last_error
        assert sender.step()
        os.waitpid(pid, 0)
    assert wal.unsent == 0


def test_while_nothing_can_be_sent_reading_goes_on_and_rings_are_freed(tmp_path: Path) -> None:
    class Hole:
        def put_all(self, frames: Sequence[Frame]) -> list[Outcome]:
            return [Outcome(Unavailable("hole"))] * len(frames)

    folder = tmp_path / "spool"
    one = SpoolOfRings(folder, ranks=1, ring_bytes=64 * KIB)
    collector = Collector(folder, Hole())
    wanted = []
    for n in range(20):  # twenty rings full
        lines = [f"{n}.{i} {'y' * 100}" for i in range(200)]
        one.texts(lines)
        wanted += lines
        while collector.poll(hurry=True):
            pass
    collector.close()
    assert Collector(folder, DiskStream(tmp_path / "out", sync=False)).finish(5.0) == 0
    one.close()

    assert texts(once(lines_in(tmp_path / "out"))) == wanted


# --- disks ----------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB, where we may mount one."""
    target = tmp_path / "disk"
    target.mkdir()
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "none", str(target)],
        capture_output=True,
        check=False,
    )
    if not mounted or mounted.returncode:
        pytest.skip("may not mount a small tmpfs")
    yield target
    subprocess.run(["umount", "-l", str(target)], check=True)


def test_on_a_full_disk_what_is_there_is_sent_and_the_log_goes_on_in_its_room(
    small_disk: Path, tmp_path: Path
) -> None:
    folder = small_disk / "spool"
    one = SpoolOfRings(folder, ranks=1, ring_bytes=4 << 20, ring_folder=tmp_path)
    one.texts([])  # definitions, while there is room
    collector = Collector(folder, DiskStream(tmp_path / "out", sync=False))
    filler = os.open(small_disk / "filler", os.O_WRONLY | os.O_CREAT)
    with contextlib.suppress(OSError):
        while os.write(filler, bytes(4096)):
            pass
    wanted = []
    for n in range(12):
        lines = [f"{n}.{i} {random.Random(i * n).randbytes(60).hex()}" for i in range(2_000)]
        one.texts(lines)
        wanted += lines
        while collector.poll(hurry=True):
            pass
    assert collector.finish(5.0) == 0
    os.close(filler)
    one.close()

    assert texts(once(lines_in(tmp_path / "out"))) == wanted


def test_without_room_and_without_network_the_least_missed_goes_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ranklog.agent.framer.HEAD_LINES", 100)
    monkeypatch.setattr("ranklog.agent.quota.TAIL_LINES", 100)
    monkeypatch.setattr(ledger, "QUOTA_LOOK_S", 0.0)

    class Switch:
        def __init__(self) -> None:
            self.sink: DiskStream | None = None

        def put(self, key: str, data: bytes) -> None:
            if self.sink is None:
                raise Unavailable("down")
            self.sink.put(key, data)

    folder, switch = tmp_path / "spool", Switch()
    monkeypatch.setattr(wal_module, "SEGMENT_BYTES", 256 * KIB)
    wal = Wal.__init__
    monkeypatch.setattr(
        Wal, "__init__", lambda self, path: wal(self, path, segment_bytes=256 * KIB)
    )
    one = SpoolOfRings(folder, ranks=1, ring_bytes=256 * KIB)
    options = Options(quota_bytes=2 << 20)
    collector = Collector(folder, switch, options)
    source = random.Random(1)
    for n in range(120):
        lines = [f"{n}.{i} {source.randbytes(300).hex()}" for i in range(100)]
        one.at_levels(lines, [30 if (n % 10, i) == (5, 50) else 20 for i in range(100)])
        while collector.poll(hurry=True):
            pass
    used = collector.ledger.used_bytes
    switch.sink = DiskStream(tmp_path / "out", sync=False)
    assert collector.finish(10.0) == 0
    one.close()

    lines = [line for line in once(lines_in(tmp_path / "out")) if line.channel == "logging"]
    seqs = [line.seq for line in lines]
    lost = collector.ledger.lines_lost
    assert lost > 500
    assert used < 5 << 19
    assert seqs[:100] == list(range(100))
    assert seqs[-100:] == list(range(max(seqs) - 99, max(seqs) + 1))
    assert [line.text.split()[0] for line in lines if line.level == 30] == [
        f"{n}.50" for n in range(5, 120, 10)
    ]


def test_a_disk_that_takes_nothing_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "spool"
    one = SpoolOfRings(folder, ranks=1, ring_bytes=1 << 20)
    collector = Collector(folder, DiskStream(tmp_path / "out", sync=False))
    real = wal_module.write_whole

    def full(fd: int, data: bytes, at: int) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(wal_module, "write_whole", full)
    one.texts(["a", "b"])
    collector.poll(hurry=True)
    assert "no space" in collector.ledger.disk_error
    one.texts(["c"])
    collector.poll(hurry=True)
    monkeypatch.setattr(wal_module, "write_whole", real)
    assert collector.finish(5.0) == 0
    one.close()

    assert texts(lines_in(tmp_path / "out")) == ["a", "b", "c"]
    assert collector.ledger.disk_error == ""


def test_what_is_logged_of_a_captured_file_gives_its_disk_back(tmp_path: Path) -> None:
    folder = tmp_path / "spool"
    announce_text(folder, "f", b"".join(b"line %06d %s\n" % (n, b"z" * 90) for n in range(90_000)))
    path = folder / "f.stdout"
    before = disk_space.disk_bytes(path)
    collector = Collector(folder, DiskStream(tmp_path / "out", sync=False))
    while collector.poll(hurry=True):
        pass
    if disk_space.disk_bytes(path) == before:
        pytest.skip("this file system keeps no holes")

    assert disk_space.disk_bytes(path) < before // 2
    assert len(texts(lines_in(tmp_path / "out"), "stdout")) == 90_000
    collector.close()


# --- lost logs, other boots, races ----------------------------------------------------------------


def test_a_lost_log_and_another_boot_never_give_a_seq_to_another_line(tmp_path: Path) -> None:
    folder, stream = tmp_path / "spool", tmp_path / "stream"
    announce_text(folder, "f", b"a\nb\n")
    Collector(folder, DiskStream(stream, sync=False), boot="one").finish(0.0)
    shutil.rmtree(folder / "wal")
    with (folder / "f.stdout").open("ab") as file:
        file.write(b"c\n")
    first = Collector(folder, DiskStream(stream, sync=False), boot="one")
    first.poll(hurry=True)
    first.close()
    with (folder / "f.stdout").open("ab") as file:
        file.write(b"d\n")
    Collector(folder, DiskStream(stream, sync=False), boot="two").finish(5.0)

    seen = once(lines_in(stream))
    assert {line.text for line in seen if line.channel == "stdout"} == {"a", "b", "c", "d"}
    counts = Counter(line.text for line in seen if line.channel == "stdout")
    assert counts["d"] == 1


def test_many_that_start_at_once_leave_one_agent(tmp_path: Path) -> None:
    folder = tmp_path / "spool"
    announce_text(folder, "f", b"x\n")
    with contextlib.ExitStack() as stack:
        agents = [stack.enter_context(agent(folder, str(tmp_path / "out"))) for _ in range(6)]
        wait_until(lambda: sum(one.process.poll() is None for one in agents) == 1)
        assert all(one.process.returncode in (0, None) for one in agents)
        wait_until(lambda: texts(lines_in(tmp_path / "out"), "stdout") == ["x"])


def test_a_storm_of_processes_that_are_gone_is_answered_for(tmp_path: Path) -> None:
    folder = tmp_path / "spool"
    for n in range(200):
        announce_text(folder, f"{n:04d}", b"%d\n" % n, pid=2**22 - 1 - n)
    assert Collector(folder, DiskStream(tmp_path / "out", sync=False)).finish(20.0) == 0

    said = texts(lines_in(tmp_path / "out"), "stdout")
    assert sorted(said, key=int) == [str(n) for n in range(200)]


# --- replay ---------------------------------------------------------------------------------------


def test_a_left_over_spool_is_replayed_frame_by_frame(tmp_path: Path) -> None:
    folder, stream = tmp_path / "spool", tmp_path / "stream"
    announce_text(folder, "f", b"framed\n", pid=2**22 - 1)

    class Hole:
        def put_all(self, frames: Sequence[Frame]) -> list[Outcome]:
            return [Outcome(Unavailable("hole"))] * len(frames)

    Collector(folder, Hole()).finish(0.0)
    waiting = [pending.data for pending in Wal(folder / "wal").pending()]
    announce_text(folder, "g", b"never read\n", pid=2**22 - 2)
    done = replay(folder, str(stream), {}, timeout_s=10.0)

    assert (done.left, done.refused) == (0, 0)
    sent = [record.data for record in DiskStream(stream).read()]
    assert sent[: len(waiting)] == waiting
    assert sorted(texts(lines_in(stream), "stdout")) == ["framed", "never read"]
    with pytest.raises(BadInput, match="holds no spool"):
        replay(tmp_path / "nothing", str(stream), {}, timeout_s=1.0)


def test_a_spool_that_is_worked_on_is_not_replayed(tmp_path: Path) -> None:
    folder = tmp_path / "spool"
    announce_text(folder, "f", b"x\n")
    with (
        spool.collector_lock(folder),
        pytest.raises(Unavailable, match="an agent works on"),
    ):
        replay(folder, str(tmp_path / "out"), {}, timeout_s=1.0)
    with pytest.raises(Unavailable, match="run still"):
        replay(folder, str(tmp_path / "out"), {}, timeout_s=1.0)
