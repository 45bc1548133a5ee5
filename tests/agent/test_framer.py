from __future__ import annotations

from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranklog import limits
from ranklog.agent import framer as framing
from ranklog.agent import pieces as cutting
from ranklog.agent.framer import FENCE_DELAY_NS, HEAD_LINES, Framer
from ranklog.agent.rows import BULK, KEPT, TELEMETRY, Row, StreamState
from ranklog.agent.wal_segment import WalFrame
from ranklog.model.frame import (
    LEVEL_INHERITED,
    NO_LF,
    TS_INHERITED,
    Drop,
    Fence,
    Frame,
    FrameStream,
    StreamEnd,
)
from ranklog.stream.frames import decode_frame, header_hash
from ranklog.stream.row_batch import RowBatch
from tests.agent.reading import Seen, lines_of
from tests.point_frames import Record, batch_of, points_of
from tests.stream.test_frames import stream

HOUR = limits.HOUR_NS


class Sent:
    """A framer and what it cut."""

    def __init__(self) -> None:
        self.sent: list[WalFrame] = []
        self.framer = Framer("agent")
        self.stream = stream(3)
        self.state = StreamState(self.stream)

    def cut(self) -> None:
        frames, self.chains = self.framer.cut()
        self.sent += frames

    def decoded(self) -> list[Frame]:
        return [decode_frame(frame.data) for frame in self.sent]

    def frames(self) -> list[FrameStream]:
        return [entry for frame in self.decoded() for entry in frame.streams]


def test_a_record_of_several_lines_is_a_group() -> None:
    one = Sent()
    one.framer.add(one.state, Row(5, [b"head", b"more", b"end"], level=20))
    one.framer.add(one.state, Row(4, [b"single"], level=20))
    one.cut()

    lines = lines_of(decode_frame(one.sent[0].data))
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
    one.cut()

    [entry] = one.frames()
    assert entry.fences == (Fence(0, ((0, 1),)), Fence(1, ((1, 3),)), Fence(5, ((3, 4),)))
    assert entry.end == StreamEnd(4, -9)


def test_a_silent_streams_hour_is_fenced_after_a_delay_and_then_closed_for_late_stamps() -> None:
    one = Sent()
    one.framer.add(one.state, Row(HOUR - 5, [b"x"]))
    one.framer.fence_past_hours([one.state], HOUR + FENCE_DELAY_NS - 1)
    one.framer.fence_past_hours([one.state], HOUR + FENCE_DELAY_NS)
    one.framer.fence_past_hours([one.state], HOUR + FENCE_DELAY_NS + 1)
    one.framer.add(one.state, Row(HOUR - 4, [b"stamped before, written after"]))
    one.cut()

    [entry] = one.frames()
    assert entry.fences == (Fence(0, ((0, 1),)),)
    assert [line.ts_ns for line in lines_of(decode_frame(one.sent[0].data))] == [HOUR - 5, HOUR]


def test_an_empty_stream_has_an_end_and_no_fence() -> None:
    one = Sent()
    one.framer.end(one.state, 0)
    one.cut()

    assert one.frames() == [FrameStream(one.stream, 0, 0, end=StreamEnd(0, 0))]


def test_frames_are_a_chain_and_none_is_over_the_record_limit() -> None:
    one = Sent()
    noise = bytes((n * n * 7919 >> 5) % 95 + 32 for n in range(200_000))
    for _ in range(20):
        one.framer.add(one.state, Row(1, [noise], metadata={f"k{n}": "v" * 900 for n in range(99)}))
    one.cut()

    frames = one.decoded()
    assert [frame.number for frame in frames] == list(range(len(frames)))
    assert [frame.previous for frame in frames] == ["", *map(header_hash, frames[:-1])]
    assert max(len(frame.data) for frame in one.sent) <= limits.FRAME_BYTES_MAX
    assert [f.streams[0].first_seq for f in frames[1:]] == [
        f.streams[0].first_seq + f.streams[0].rows for f in frames[:-1]
    ]


def test_a_long_line_is_cut_between_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "PIECE_BYTES", 5)
    one = Sent()
    one.framer.add(one.state, Row(1, ["äöüß".encode()]))
    one.cut()

    lines = lines_of(decode_frame(one.sent[0].data))
    assert [(x.text, bool(x.flags & NO_LF)) for x in lines] == [("äö", True), ("üß", False)]


def test_drops_are_told_with_their_stream() -> None:
    one = Sent()
    one.framer.drop(one.state, 7, "quota")
    one.cut()

    assert one.frames() == [FrameStream(one.stream, 0, 0, drops=(Drop(7, "quota"),))]


def test_an_error_hurries_its_frame() -> None:
    one = Sent()
    ages = {"age_ns": 500, "urgent_age_ns": 100}
    one.framer.add(one.state, Row(1, [b"x"], level=20))
    assert not one.framer.is_due(1_000, **ages)
    assert not one.framer.is_due(1_200, **ages)

    one.framer.add(one.state, Row(1, [b"y"], level=40))
    assert one.framer.is_due(1_200, **ages)
    one.cut()
    assert not one.framer.is_due(9_000, **ages)


def test_tenants_never_share_a_frame() -> None:
    one = Sent()
    other = StreamState(stream(3, tenant="other"))
    one.framer.add(one.state, Row(1, [b"x"]))
    one.framer.add(other, Row(1, [b"y"]))
    one.cut()

    assert [(frame.key, decode_frame(frame.data).tenant) for frame in one.sent] == [
        ("default/demo/n0", "default"),
        ("other/demo/n0", "other"),
    ]
    assert {tenant: number for tenant, (number, _) in one.chains.items()} == {
        "default": 1,
        "other": 1,
    }


def batch(texts: list[bytes], levels: list[int], ts: list[int] | None = None) -> RowBatch:
    return RowBatch(ts=array("q", ts or [1] * len(texts)), level=array("h", levels), texts=texts)


def seqs(one: Sent, klass: int) -> list[tuple[int, str]]:
    return [
        (line.seq, line.text)
        for frame in one.sent
        if frame.klass == klass
        for line in lines_of(decode_frame(frame.data))
    ]


def point_seqs(one: Sent, klass: int) -> list[tuple[int, str]]:
    return [
        (point.seq, point.series)
        for frame in one.sent
        if frame.klass == klass
        for point in points_of(decode_frame(frame.data))
    ]


def test_from_a_warning_on_a_streams_lines_are_of_the_class_that_is_kept() -> None:
    one = Sent()
    one.state.next_seq = HEAD_LINES
    one.framer.add_batch(one.state, batch([b"a", b"b", b"c"], [20, 30, 20]))
    one.framer.add(one.state, Row(1, [b"d"], level=10))
    one.cut()
    one.framer.add_batch(one.state, batch([b"e"], [20]))
    one.cut()

    first = HEAD_LINES
    assert seqs(one, BULK) == [(first, "a"), (first + 4, "e")]
    assert seqs(one, KEPT) == [(first + 1, "b"), (first + 2, "c"), (first + 3, "d")]


def test_the_first_lines_of_a_stream_are_kept_and_telemetry_has_a_class() -> None:
    one = Sent()
    one.state.next_seq = HEAD_LINES - 1
    points = StreamState(stream(3, channel="telemetry"), points=True)
    one.framer.add_batch(one.state, batch([b"last"], [20]))
    one.framer.add_points(points, batch_of([Record({"loss": 2.0}, ts=1)]))
    one.cut()
    one.framer.add_batch(one.state, batch([b"bulk"], [20]))
    one.cut()

    assert seqs(one, KEPT) == [(HEAD_LINES - 1, "last")]
    assert point_seqs(one, TELEMETRY) == [(0, "loss")]
    assert not point_seqs(one, KEPT) and not point_seqs(one, BULK)
    assert seqs(one, BULK) == [(HEAD_LINES, "bulk")]


def test_points_of_two_hours_are_fenced_and_time_never_runs_back() -> None:
    one = Sent()
    points = StreamState(stream(3, channel="telemetry"), points=True)
    times = [5, 3, limits.HOUR_NS + 1, limits.HOUR_NS]
    records = [Record({"a": 1.0, "b": 2.0}, ts=ts, iteration=at) for at, ts in enumerate(times)]
    one.framer.add_points(points, batch_of(records))
    one.framer.end(points, 0)
    one.cut()

    frames = [decode_frame(frame.data) for frame in one.sent]
    found = [point for frame in frames for point in points_of(frame)]
    assert [(p.seq, p.ts) for p in found[::2]] == [
        (0, 5),
        (1, 5),
        (2, limits.HOUR_NS + 1),
        (3, limits.HOUR_NS + 1),
    ]
    entries = [entry for frame in frames for entry in frame.streams]
    fences = [fence for entry in entries for fence in entry.fences]
    assert fences == [Fence(0, ((0, 2),)), Fence(1, ((2, 4),))]
    assert [entry.end for entry in entries if entry.end] == [StreamEnd(4, 0)]
    assert {frame.kind for frame in frames} == {"point"}


@settings(max_examples=100)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["rows", "batch", "cut", "drop", "manifest"]),
            st.lists(
                st.tuples(st.integers(0, 3 * HOUR), st.sampled_from([0, 20, 30, 40])),
                min_size=1,
                max_size=5,
            ),
        ),
        max_size=12,
    )
)
def test_batches_and_rows_make_the_same_lines_and_seq_has_no_holes(
    steps: list[tuple[str, list[tuple[int, int]]]],
) -> None:
    one, other = Sent(), Sent()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(framing, "HEAD_LINES", 4)
        patch.setattr(framing, "BATCH_ROWS", 3)
        for number, (step, items) in enumerate(steps):
            texts = [b"%d.%d" % (number, i) for i in range(len(items))]
            ts, levels = [t for t, _ in items], [level for _, level in items]
            for sent in (one, other):
                if step == "cut":
                    sent.cut()
                elif step == "drop":
                    sent.framer.drop(sent.state, 1, "why")
                elif step == "manifest":
                    sent.framer.manifest(sent.state, b"m")
                elif sent is one and step == "batch":
                    sent.framer.add_batch(sent.state, batch(texts, levels, ts))
                else:
                    for text, at, level in zip(texts, ts, levels, strict=True):
                        sent.framer.add(sent.state, Row(at, [text], level or None))
        one.cut()
        other.cut()

    mine = sorted((line for frame in one.decoded() for line in lines_of(frame)), key=by_seq)
    assert mine == sorted((x for f in other.decoded() for x in lines_of(f)), key=by_seq)
    assert [line.seq for line in mine] == list(range(len(mine)))
    fences = [f for entry in one.frames() for f in entry.fences]
    assert fences == [f for entry in other.frames() for f in entry.fences]


def by_seq(line: Seen) -> int:
    return line.seq
