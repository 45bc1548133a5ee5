from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from ranklog import limits
from ranklog.agent import collector as collecting
from ranklog.agent import sending
from ranklog.agent.collector import Collector
from ranklog.agent.sinks import Frame, Outcome
from ranklog.errors import BadInput, Unavailable
from ranklog.model.frame import StreamEnd
from ranklog.produce import spool
from ranklog.produce.handler import RanklogHandler
from ranklog.produce.identity import Identity
from ranklog.produce.producer import Producer
from ranklog.produce.spool import ProcessFiles
from ranklog.stream.disk import DiskStream
from ranklog.stream.frames import decode_frame
from tests.agent.reading import lines_in, lines_of, streams_in

IDENTITY = Identity("default", "demo", "l1", 0, "n0", 3, 3, 8)


class Flaky:
    """A sink that fails as told, then takes frames into a disk stream."""

    def __init__(self, stream: DiskStream, failures: list[Exception]) -> None:
        self.stream = stream
        self.failures = failures

    def put(self, partition_key: str, data: bytes) -> str:
        if self.failures:
            raise self.failures.pop(0)
        return self.stream.put(partition_key, data)


@pytest.fixture
def stream(tmp_path: Path) -> DiskStream:
    return DiskStream(tmp_path / "stream", sync=False)


def producer(tmp_path: Path) -> Producer:
    return Producer(tmp_path / "spool", IDENTITY)


def say(one: Producer, *texts: str) -> None:
    for text in texts:
        one.emit(20, one.site_number("a.py", 1, None, None), text)


def texts(tmp_path: Path, place: str = "stream") -> list[str]:
    return [line.text for line in lines_in(tmp_path / place)]


def test_what_is_sent_is_acknowledged(tmp_path: Path, stream: DiskStream) -> None:
    one = producer(tmp_path)
    one.has_destination = True
    collector = Collector(tmp_path / "spool", stream)
    say(one, "a", "b")
    assert one.flush(0.0) == 2

    collector.poll(hurry=True)

    assert texts(tmp_path) == ["a", "b"]
    assert one.flush(0.0) == 0
    one.close()
    collector.finish(1.0)


def test_a_sink_that_is_down_delays_and_loses_nothing(
    tmp_path: Path, stream: DiskStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "RETRY_FIRST_S", 0.001)
    one = producer(tmp_path)
    sink = Flaky(stream, [Unavailable("down")] * 4)
    collector = Collector(tmp_path / "spool", sink)
    say(one, "a")

    assert collector.finish(5.0) == 0
    assert texts(tmp_path) == ["a"]
    one.close()


def test_where_frames_go_elsewhere_nobody_misses_those_before_them(tmp_path: Path) -> None:
    one = producer(tmp_path)

    def send(place: str, text: str) -> list[tuple[str, int]]:
        say(one, text)
        one.flush(0.0)
        out = DiskStream(tmp_path / place, sync=False)
        Collector(tmp_path / "spool", out, destination=place).finish(1.0)
        frames = [decode_frame(record.data) for record in out.read()]
        return [(frame.agent, frame.number) for frame in frames]

    [(first, number), *_] = send("a", "to a")
    assert number == 0
    assert [agent for agent, _ in send("a", "to a again")] == [first] * 2
    [(other, number)] = send("b", "to b")
    assert (number, other != first) == (0, True)
    one.close()
    assert texts(tmp_path, "a") == ["to a", "to a again"]
    [line] = [line for line in lines_in(tmp_path / "b") if line.channel == "logging"]
    assert (line.text, line.seq) == ("to b", 2)  # the same stream, and its seqs go on


def test_frames_that_wait_are_sent_as_they_are_wherever_they_go(
    tmp_path: Path, stream: DiskStream
) -> None:
    one = producer(tmp_path)
    say(one, "a")
    down = Flaky(stream, [Unavailable("down")] * 10_000)
    folder = tmp_path / "spool"
    first = Collector(folder, down, destination="a")
    first.finish(0.2)
    say(one, "b")
    one.close()

    assert Collector(folder, stream, destination="b").finish(1.0) == 0
    frames = [decode_frame(record.data) for record in stream.read()]
    assert [frame.number for frame in frames] == list(range(len(frames)))
    assert {frame.agent for frame in frames} == {first.ledger.framer.agent}
    assert texts(tmp_path) == ["a", "b"]


def test_finish_gives_up_in_time_and_the_spool_keeps_the_lines(
    tmp_path: Path, stream: DiskStream
) -> None:
    one = producer(tmp_path)
    say(one, "a")
    one.close()
    down = Flaky(stream, [Unavailable("down")] * 10_000)

    assert Collector(tmp_path / "spool", down).finish(0.2) == 1
    assert one.flush(0.0) == 1
    assert Collector(tmp_path / "spool", stream).finish(1.0) == 0
    assert texts(tmp_path) == ["a"]


def test_a_frame_that_is_refused_is_kept_and_the_rest_goes_on(
    tmp_path: Path, stream: DiskStream
) -> None:
    one = producer(tmp_path)
    collector = Collector(tmp_path / "spool", Flaky(stream, [BadInput("not so")]))
    say(one, "a")
    collector.poll(hurry=True)
    say(one, "b")
    collector.finish(1.0)
    one.close()

    assert [line.text for line in lines_in(tmp_path / "stream") if line.channel != "agent"] == ["b"]
    [kept] = (tmp_path / "spool" / "refused").glob("*.frame")
    assert [line.text for line in lines_of(decode_frame(kept.read_bytes()))] == ["a"]
    assert collector.sender.refused == 1


def test_a_second_collector_goes_on_where_the_first_ended(
    tmp_path: Path, stream: DiskStream
) -> None:
    one = producer(tmp_path)
    say(one, "a", "b\nc")
    Collector(tmp_path / "spool", stream).finish(1.0)
    say(one, "d")
    Collector(tmp_path / "spool", stream).finish(1.0)
    one.close()

    seen = [(line.incarnation, line.seq, line.text) for line in lines_in(tmp_path / "stream")]
    name = one.process.incarnation
    assert seen == [(name, 0, "a"), (name, 1, "b"), (name, 2, "c"), (name, 3, "d")]


def test_a_process_that_is_gone_ends_its_streams_and_its_files_are_removed(
    tmp_path: Path, stream: DiskStream
) -> None:
    folder = tmp_path / "spool"
    spool.make_spool(folder)
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    (folder / "f.stdout").write_bytes(b"one\ntwo")
    start = spool.process_start(child.pid)
    spool.announce(folder, ProcessFiles(IDENTITY, "f", child.pid, start, {"stdout": "f.stdout"}))
    collector = Collector(folder, stream)
    collector.poll(hurry=True)
    assert texts(tmp_path) == ["one"]

    child.communicate(b"\n")
    collector.poll(hurry=True)

    assert texts(tmp_path) == ["one", "two", "rank 3 ended: exit code 0, last seq 1"]
    ends = {e.stream.channel: e.end for e in streams_in(tmp_path / "stream") if e.end}
    assert ends == {"stdout": StreamEnd(2, 0), "agent": StreamEnd(1, 0)}
    assert collector.is_idle
    assert [path.name for path in folder.iterdir()] == ["wal"]


def test_a_later_process_with_the_same_pid_is_not_the_one(tmp_path: Path) -> None:
    assert spool.is_alive(os.getpid(), spool.process_start(os.getpid()))
    assert not spool.is_alive(os.getpid(), "1")


def test_a_record_of_logging_arrives_with_all_it_has(tmp_path: Path, stream: DiskStream) -> None:
    one = producer(tmp_path)
    logger = logging.Logger("trainer")
    logger.addHandler(RanklogHandler(one))
    logger.info("loss %.1f", 2.5, extra={"loss": 2.5, "step_name": "warm-up"})
    try:
        raise ValueError("x")
    except ValueError:
        logger.exception("failed\nbadly")
    Collector(tmp_path / "spool", stream).finish(1.0)
    one.close()

    first, *group = lines_in(tmp_path / "stream")
    assert (first.text, first.level, first.logger) == ("loss 2.5", 20, "trainer")
    line = test_a_record_of_logging_arrives_with_all_it_has.__code__.co_firstlineno + 4
    assert first.site == f"{__file__}:{line}"
    assert first.metadata == (("loss", 2.5), ("step_name", "warm-up"))
    assert [line.group for line in group] == [1] * len(group)
    assert [group[0].text, group[1].text, group[2].text, group[-1].text] == [
        "failed",
        "badly",
        "Traceback (most recent call last):",
        "ValueError: x",
    ]


def test_a_message_that_does_not_format_is_kept_as_evidence(
    tmp_path: Path, stream: DiskStream
) -> None:
    one = producer(tmp_path)
    logger = logging.Logger("trainer")
    logger.addHandler(RanklogHandler(one))
    logger.info("loss %d", "high")
    Collector(tmp_path / "spool", stream).finish(1.0)
    one.close()

    assert texts(tmp_path)[0].startswith("loss %d ('high',) (not formatted: TypeError(")


def test_a_process_that_runs_has_heartbeats_and_one_that_is_gone_has_none(
    tmp_path: Path, stream: DiskStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1_700_000_000 * limits.SECOND_NS]
    monkeypatch.setattr(collecting, "now_ns", lambda: now[0])
    one = producer(tmp_path)
    collector = Collector(tmp_path / "spool", stream)
    for _ in range(300):
        collector.poll()
        now[0] += limits.SECOND_NS
    one.close()
    collector.finish(1.0)

    beats = [entry.alive_ns for entry in streams_in(tmp_path / "stream") if entry.alive_ns]
    seconds = [(ns - beats[0]) // limits.SECOND_NS for ns in beats]
    assert seconds == [0, 10, 20, 30, 40, 50, 60, 120, 180, 240, 300]


def test_who_waits_for_a_sink_that_makes_batches_waits_for_no_batch(
    tmp_path: Path, stream: DiskStream
) -> None:
    class Batches:
        batch_age_s = 1_000.0

        def put_all(self, frames: Sequence[Frame]) -> list[Outcome]:
            for key, data in frames:
                stream.put(key, data)
            return [Outcome()] * len(frames)

    one = producer(tmp_path)
    one.has_destination = True
    collector = Collector(tmp_path / "spool", Batches())
    say(one, "a")
    collector.poll()
    assert texts(tmp_path) == []
    assert one.flush(0.0) == 1  # asks the agent, and gives up at once

    collector.poll()
    assert texts(tmp_path) == ["a"]
    assert one.flush(0.0) == 0
    one.close()
    collector.close()


def test_while_somebody_waits_the_next_look_is_soon(tmp_path: Path) -> None:
    class Hole:
        batch_age_s = 1_000.0

        def put_all(self, frames: Sequence[Frame]) -> list[Outcome]:
            return [Outcome(Unavailable("down"))] * len(frames)

    one = producer(tmp_path)
    one.has_destination = True
    collector = Collector(tmp_path / "spool", Hole())
    say(one, "a")
    assert collector.pause_s == collecting.POLL_S
    one.flush(0.0)
    collector.poll(send=False)
    assert collector.pause_s == collecting.POLL_WAITED_S
    collector.sender.step()
    assert collector.pause_s == collecting.POLL_S  # looking more often would not help
    one.close()
    collector.close()
