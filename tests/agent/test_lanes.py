"""A stream that floods has frames of its own, which are sent beside the others' and dropped before them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from ranklog.agent import quota
from ranklog.agent.framer import Framer
from ranklog.agent.rows import BULK, FLOOD, FLOOD_BYTES, KEPT, Row, StreamState
from ranklog.agent.sending import FLOOD_BATCH_BYTES, FLOOD_TURN_S, Sender
from ranklog.agent.sinks import TAKEN, Frame, Outcome
from ranklog.agent.wal import Wal
from ranklog.agent.wal_segment import WalFrame
from ranklog.limits import SECOND_NS
from ranklog.model.levels import INFO, WARNING
from ranklog.stream.frames import decode_frame
from tests.agent.reading import lines_of
from tests.stream.test_frames import stream

HEAD = 10_000  # lines of a stream's beginning are of the class that is kept longest


class Two:
    """A stream that says little and one that says much, long after they began."""

    def __init__(self) -> None:
        self.framer = Framer("agent")
        self.quiet, self.loud = StreamState(stream(0)), StreamState(stream(1))
        for state in (self.quiet, self.loud):
            state.next_seq = HEAD
        self.sent: list[WalFrame] = []
        self.now = SECOND_NS
        self.draw = random.Random(1)

    def say(self, state: StreamState, lines: int, level: int = INFO) -> None:
        for _ in range(lines):
            self.framer.add(
                state, Row(self.now, [self.draw.randbytes(500).hex().encode()], level=level)
            )

    def cut(self, seconds: float = 1.0) -> None:
        frames, _ = self.framer.cut()
        self.sent += frames
        self.now += int(seconds * SECOND_NS)

    def classes(self, rank: int) -> set[int]:
        return {
            frame.klass
            for frame in self.sent
            if any(e.stream.rank == rank and e.rows for e in decode_frame(frame.data).streams)
        }


def test_what_a_flood_says_beyond_its_room_is_in_frames_of_its_own() -> None:
    two = Two()
    for _ in range(10):
        two.say(two.quiet, 5)
        two.say(two.loud, 2 * FLOOD_BYTES // 10_000)
        two.cut(0.1)
    assert (two.classes(0), two.classes(1)) == ({BULK}, {BULK, FLOOD})
    floods = [decode_frame(frame.data) for frame in two.sent if frame.klass == FLOOD]
    assert {entry.stream.rank for frame in floods for entry in frame.streams} == {1}
    assert len({frame.key for frame in two.sent if frame.klass == FLOOD}) > 1  # no shard's alone
    assert len({frame.key for frame in two.sent if frame.klass != FLOOD}) == 1


def test_a_flood_that_is_over_is_one_no_more() -> None:
    two = Two()
    two.say(two.loud, 2 * FLOOD_BYTES // 1_000)
    two.cut(60.0)
    two.sent.clear()
    two.say(two.loud, 1)
    two.cut()
    two.say(two.loud, 1)
    two.cut()
    assert two.sent[-1].klass == BULK


def test_a_warning_of_a_flood_is_kept_as_all_warnings_are() -> None:
    two = Two()
    two.say(two.loud, 2 * FLOOD_BYTES // 1_000)
    two.say(two.loud, 1, WARNING)
    two.cut()
    assert two.classes(1) == {BULK, FLOOD, KEPT}


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(st.booleans(), st.integers(0, 400), st.sampled_from([INFO, WARNING])),
        max_size=12,
    ),
    st.floats(0, 3),
)
def test_every_line_is_in_one_frame_and_in_order_and_a_frame_has_one_run_of_a_stream(
    said: Sequence[tuple[bool, int, int]], seconds: float
) -> None:
    two = Two()
    for is_loud, lines, level in said:
        two.say(two.loud if is_loud else two.quiet, lines, level)
        if lines % 3 == 0:
            two.cut(seconds)
    two.cut()
    frames = [decode_frame(frame.data) for frame in two.sent]
    for state in (two.quiet, two.loud):
        seqs = [
            line.seq
            for frame in frames
            for line in lines_of(frame)
            if line.rank == state.stream.rank
        ]
        assert sorted(seqs) == list(range(HEAD, state.next_seq))
    assert all(len({e.stream for e in frame.streams}) == len(frame.streams) for frame in frames)


class Link:
    """A sink with a bandwidth, on a clock of its own; what it was given, in order."""

    def __init__(self, bytes_per_s: float) -> None:
        self.now, self.bytes_per_s = 0.0, bytes_per_s
        self.seen: list[tuple[float, bytes]] = []

    def put_all(self, frames: Sequence[Frame]) -> list[Outcome]:
        for _, data in frames:
            self.now += len(data) / self.bytes_per_s
            self.seen.append((self.now, data))
        return [TAKEN] * len(frames)


def test_others_wait_for_no_more_of_a_flood_than_goes_through_in_a_turn(tmp_path: Path) -> None:
    wal, link = Wal(tmp_path / "wal"), Link(100_000)
    flood = b"f" * 10_000
    wal.append([WalFrame(FLOOD, "k", flood)] * 200, {})  # 20 s of the link
    sender = Sender(wal, link, tmp_path / "refused", clock=lambda: link.now)
    for _ in range(3):
        sender.step()
    waited = []
    for number in range(20):
        name, since = f"q{number}".encode(), link.now
        wal.append([WalFrame(BULK, "k", name)], {})
        while not any(data == name for _, data in link.seen):
            assert sender.step()
        waited.append(link.now - since)
    assert max(waited) <= 2 * FLOOD_TURN_S + len(flood) / link.bytes_per_s
    while sender.step():
        pass
    assert sum(data == flood for _, data in link.seen) == 200  # and it is not starved


def test_a_turn_of_a_flood_is_bounded_on_a_fast_link_as_well(tmp_path: Path) -> None:
    wal, link = Wal(tmp_path / "wal"), Link(1e12)
    wal.append([WalFrame(FLOOD, "k", b"f" * 100_000)] * 20, {})
    wal.append([WalFrame(BULK, "k", b"q")] * 3, {})
    sender = Sender(wal, link, tmp_path / "refused", clock=lambda: link.now)
    sender.step()
    assert [data for _, data in link.seen] == [b"q"] * 3
    wal.append([WalFrame(BULK, "k", b"q")], {})
    before = len(link.seen)
    sender.step()
    assert sum(len(data) for _, data in link.seen[before:]) <= FLOOD_BATCH_BYTES


def test_a_full_spool_drops_what_floods_first(tmp_path: Path) -> None:
    two = Two()
    two.say(two.quiet, 5)
    two.say(two.loud, 3 * FLOOD_BYTES // 1_000)
    two.cut()
    wal = Wal(tmp_path / "wal")
    wal.append(two.sent, {})
    lost: list[int | None] = []
    quota.make_room(wal, 1, lambda entry: lost.append(entry.stream.rank))
    assert set(lost) == {1}


def test_floods_are_told_apart_by_the_agent_that_goes_on(tmp_path: Path) -> None:
    frames = [WalFrame(FLOOD, "k", b"f"), WalFrame(BULK, "k", b"q"), WalFrame(FLOOD, "k", b"g")]
    wal = Wal(tmp_path / "wal")
    wal.append(frames, {})
    wal.close()
    again = Wal(tmp_path / "wal")
    assert (again.unsent, again.floods) == (3, 2)
    assert [found.data for found in again.pending(floods=False)] == [b"q"]
    again.delivered(again.pending(floods=True))
    assert (again.unsent, again.floods) == (1, 0)
