from __future__ import annotations

import pytest

from ranklog import limits
from ranklog.agent import framer as framing
from ranklog.agent.framer import FENCE_DELAY_NS, Framer, Row
from ranklog.model.frame import (
    LEVEL_INHERITED,
    NO_LF,
    TS_INHERITED,
    Drop,
    Fence,
    FrameStream,
    StreamEnd,
)
from ranklog.stream.frames import decode_frame, header_hash
from tests.agent.reading import lines_of
from tests.stream.test_frames import stream

HOUR = limits.HOUR_NS


class Sent:
    """A framer and what it sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, bytes]] = []
        self.framer = Framer("agent", lambda key, data: self.sent.append((key, data)))
        self.stream = stream(3)
        self.state = self.framer.state(self.stream)

    def frames(self) -> list[FrameStream]:
        return [entry for _, data in self.sent for entry in decode_frame(data).streams]


def test_a_record_of_several_lines_is_a_group() -> None:
    one = Sent()
    one.framer.add(one.state, Row(5, [b"head", b"more", b"end"], level=20))
    one.framer.add(one.state, Row(4, [b"single"], level=20))
    one.framer.cut_all()

    lines = lines_of(decode_frame(one.sent[0][1]))
    inherited = TS_INHERITED | LEVEL_INHERITED
    assert [(x.seq, x.text, x.group, x.flags, x.ts_ns) for x in lines] == [
        (0, "head", 0, 0, 5),
        (1, "more", 0, inherited, 5),
        (2, "end", 0, inherited, 5),
        (3, "single", None, 0, 5),  # time never decreases within a stream
    ]


def test_the_hours_of_a_stream_are_fenced_and_its_end_is_told() -> None:
    one = Sent()
    for ts in (HOUR - 1, HOUR, HOUR + 1, 5 * HOUR):
        one.framer.add(one.state, Row(ts, [b"x"]))
    one.framer.end(one.state, -9)
    one.framer.end(one.state, 0)
    one.framer.cut_all()

    [entry] = one.frames()
    assert entry.fences == (Fence(0, ((0, 1),)), Fence(1, ((1, 3),)), Fence(5, ((3, 4),)))
    assert entry.end == StreamEnd(4, -9)


def test_a_silent_streams_hour_is_fenced_after_a_delay_and_then_closed_for_late_stamps() -> None:
    one = Sent()
    one.framer.add(one.state, Row(HOUR - 5, [b"x"]))
    one.framer.fence_past_hours(HOUR + FENCE_DELAY_NS - 1)
    one.framer.fence_past_hours(HOUR + FENCE_DELAY_NS)
    one.framer.fence_past_hours(HOUR + FENCE_DELAY_NS + 1)
    one.framer.add(one.state, Row(HOUR - 4, [b"stamped before, written after"]))
    one.framer.cut_all()

    [entry] = one.frames()
    assert entry.fences == (Fence(0, ((0, 1),)),)
    assert [line.ts_ns for line in lines_of(decode_frame(one.sent[0][1]))] == [HOUR - 5, HOUR]


def test_an_empty_stream_has_an_end_and_no_fence() -> None:
    one = Sent()
    one.framer.end(one.state, 0)
    one.framer.cut_all()

    assert one.frames() == [FrameStream(one.stream, 0, 0, end=StreamEnd(0, 0))]


def test_frames_are_a_chain_and_none_is_over_the_record_limit() -> None:
    one = Sent()
    noise = bytes((n * n * 7919 >> 5) % 95 + 32 for n in range(200_000))
    for _ in range(20):
        one.framer.add(one.state, Row(1, [noise], metadata={f"k{n}": "v" * 900 for n in range(99)}))
    one.framer.cut_all()

    frames = [decode_frame(data) for _, data in one.sent]
    assert [frame.number for frame in frames] == list(range(len(frames)))
    assert [frame.previous for frame in frames] == ["", *map(header_hash, frames[:-1])]
    assert max(len(data) for _, data in one.sent) <= limits.FRAME_BYTES_MAX
    assert [f.streams[0].first_seq for f in frames[1:]] == [
        f.streams[0].first_seq + f.streams[0].rows for f in frames[:-1]
    ]


def test_a_long_line_is_cut_between_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "PIECE_BYTES", 5)
    one = Sent()
    one.framer.add(one.state, Row(1, ["äöüß".encode()]))
    one.framer.cut_all()

    lines = lines_of(decode_frame(one.sent[0][1]))
    assert [(x.text, bool(x.flags & NO_LF)) for x in lines] == [("äö", True), ("üß", False)]


def test_drops_are_told_with_their_stream() -> None:
    one = Sent()
    one.framer.drop(one.state, 7, "quota")
    one.framer.cut_all()

    assert one.frames() == [FrameStream(one.stream, 0, 0, drops=(Drop(7, "quota"),))]


def test_an_error_hurries_its_frame() -> None:
    one = Sent()
    one.framer.add(one.state, Row(1, [b"x"], level=20))
    one.framer.cut_due(1_000, age_ns=500, urgent_age_ns=100)
    one.framer.cut_due(1_200, age_ns=500, urgent_age_ns=100)
    assert one.sent == []

    one.framer.add(one.state, Row(1, [b"y"], level=40))
    one.framer.cut_due(1_250, age_ns=500, urgent_age_ns=100)
    assert len(one.sent) == 1


def test_tenants_never_share_a_frame() -> None:
    one = Sent()
    other = one.framer.state(stream(3, tenant="other"))
    one.framer.add(one.state, Row(1, [b"x"]))
    one.framer.add(other, Row(1, [b"y"]))
    one.framer.cut_all()

    assert [(key, decode_frame(data).tenant) for key, data in one.sent] == [
        ("default/demo/n0", "default"),
        ("other/demo/n0", "other"),
    ]
