from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ranklog.agent.sending import Sender
from ranklog.agent.sinks import Denied, Frame, Outcome
from ranklog.agent.wal import Wal
from ranklog.agent.wal_segment import WalFrame
from ranklog.errors import Unavailable


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Told:
    """A sink that answers as it is told, in turn; then takes everything."""

    batch_age_s = 0.0

    def __init__(self, *answers: Exception | Outcome) -> None:
        self.answers = list(answers)
        self.seen: list[list[bytes]] = []

    def put_all(self, frames: Sequence[Frame]) -> list[Outcome]:
        self.seen.append([data for _, data in frames])
        answer = self.answers.pop(0) if self.answers else Outcome()
        if isinstance(answer, Exception):
            raise answer
        return [answer] * len(frames)


def wal_of(tmp_path: Path, *frames: bytes) -> Wal:
    wal = Wal(tmp_path / "wal")
    for frame in frames:
        wal.append([WalFrame(0, "k", frame)], {})
    return wal


def test_an_error_that_nobody_foresaw_does_not_end_sending(tmp_path: Path) -> None:
    wal, told, clock = wal_of(tmp_path, b"a"), Told(KeyError("Records")), Clock()
    sender = Sender(wal, told, tmp_path / "refused", clock=clock)

    assert not sender.step()
    assert "KeyError" in sender.last_error
    clock.now += 1.0
    assert sender.step()
    assert (wal.unsent, sender.failing_since) == (0, None)


def test_a_sink_that_makes_objects_gets_batches_and_not_every_frame(tmp_path: Path) -> None:
    wal, told, clock = wal_of(tmp_path, b"a"), Told(), Clock()
    told.batch_age_s = 2.0
    sender = Sender(wal, told, tmp_path / "refused", clock=clock)

    assert not sender.step()
    clock.now = 1.9
    wal.append([WalFrame(0, "k", b"b")], {})
    assert not sender.step()
    clock.now = 2.0
    assert sender.step()
    assert told.seen == [[b"a", b"b"]]
    wal.append([WalFrame(0, "k", b"c")], {})
    assert not sender.step()
    assert sender.step(hurry=True)


def test_what_somebody_waits_for_is_sent_without_filling_a_batch(tmp_path: Path) -> None:
    wal, told, clock = wal_of(tmp_path, b"a"), Told(), Clock()
    told.batch_age_s = 10.0
    sender = Sender(wal, told, tmp_path / "refused", clock=clock)
    assert not sender.step()

    sender.urge(wal.end)
    wal.append([WalFrame(0, "k", b"b")], {})
    assert sender.is_urged
    assert sender.step()
    assert told.seen == [[b"a", b"b"]]
    wal.append([WalFrame(0, "k", b"c")], {})
    assert not sender.is_urged
    assert not sender.step()


def test_who_waits_for_a_destination_that_is_down_waits_as_everybody(tmp_path: Path) -> None:
    wal, clock = wal_of(tmp_path, b"a"), Clock()
    sender = Sender(wal, Told(Outcome(Unavailable("down"))), tmp_path / "refused", clock=clock)
    sender.urge(wal.end)
    sender.step()

    assert not sender.is_urged


def test_who_refuses_is_told_until_it_takes_a_frame(tmp_path: Path) -> None:
    wal, clock = wal_of(tmp_path, b"a"), Clock()
    told = Told(Outcome(Denied("no such key")), Outcome(Unavailable("down")))
    sender = Sender(wal, told, tmp_path / "refused", clock=clock)
    seen = []
    for _ in range(2):
        sender.step()
        seen.append(sender.denied)
        clock.now = sender.retry_at

    assert seen == ["no such key", ""]


def test_waits_double_from_failure_to_failure_and_are_drawn_from_nothing_on(tmp_path: Path) -> None:
    wal, clock = wal_of(tmp_path, b"a"), Clock()
    told = Told(*[Outcome(Unavailable("down"))] * 12)
    drawn: list[tuple[float, float]] = []

    def draw(low: float, high: float) -> float:
        drawn.append((low, high))
        return high

    sender = Sender(wal, told, tmp_path / "refused", clock=clock, draw=draw)
    while wal.unsent:
        sender.step()
        clock.now = max(clock.now, sender.retry_at)

    assert [round(high, 1) for _, high in drawn] == [
        *(0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6),
        *(30.0, 30.0, 30.0, 30.0),
    ]
    assert {low for low, _ in drawn} == {0.0}
