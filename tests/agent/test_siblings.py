"""Whatever frames are missing: no answer over lines that were said and are not there is complete."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranklog.agent import framer as framing
from ranklog.agent.framer import Framer
from ranklog.agent.rows import StreamState
from ranklog.agent.wal_segment import WalFrame
from ranklog.client import Client
from ranklog.errors import NotFound
from ranklog.ingest.batch import ingest_batch
from ranklog.limits import HOUR_NS, SECOND_NS
from ranklog.model.frame import Fence, FrameStream
from ranklog.model.record import Record
from ranklog.store.memory import MemoryStore
from ranklog.stream.frames import decode_frame
from ranklog.stream.row_batch import RowBatch
from tests.ingest.frames import T0, stream
from tests.point_frames import Record as Measured
from tests.point_frames import batch_of

CHANNELS = ("logging", "stdout", "telemetry")


def state_of(process: int, channel: str) -> StreamState:
    one = stream(process, channel=channel, incarnation=f"p{process}", world_size=2)
    return StreamState(one, points=channel == "telemetry")


@dataclass
class Job:
    """Two processes of three streams, what they said, and the frames of it."""

    framer: Framer = field(default_factory=lambda: Framer("a" * 16))
    states: dict[tuple[int, str], StreamState] = field(default_factory=dict)
    said: list[tuple[int, str, int, int]] = field(default_factory=list)  # …, seq, ts
    frames: list[bytes] = field(default_factory=list)
    cuts: list[int] = field(default_factory=list)  # which cut each frame is of

    def state(self, process: int, channel: str) -> StreamState:
        key = process, channel
        if key not in self.states:
            self.states[key] = state_of(process, channel)
        return self.states[key]

    def say(self, process: int, channel: str, ts: int, level: int = 20) -> None:
        state = self.state(process, channel)
        ts = max(ts, state.last_ts)
        self.said.append((process, channel, state.next_seq, ts))
        if state.points:
            self.framer.add_points(state, batch_of([Measured({"loss": 1.0}, ts=ts)]))
        else:
            batch = RowBatch(ts=array("q", [ts]), level=array("h", [level]), texts=[b"x"])
            self.framer.add_batch(state, batch)

    def cut(self) -> None:
        self._keep(self.framer.cut()[0])

    def _keep(self, frames: Sequence[WalFrame]) -> None:
        number = self.cuts[-1] + 1 if self.cuts else 0
        self.cuts += [number] * len(frames)
        self.frames += [frame.data for frame in frames]

    def restart(self) -> None:
        """Another agent goes on from the log."""
        frames, chains = self.framer.cut()
        self._keep(frames)
        self.framer = Framer("a" * 16, dict(chains))
        for key, state in self.states.items():
            again = self.states[key] = state_of(*key)
            again.restore(state.saved())
        self.look(0)

    def look(self, now_ns: int) -> None:
        self.framer.fence_past_hours(list(self.states.values()), now_ns)

    def end(self) -> None:
        for state in self.states.values():
            self.framer.end(state, 0)

    def entries(self) -> list[list[FrameStream]]:
        return [list(decode_frame(data).streams) for data in self.frames]


def store_of(frames: list[bytes], size: int) -> MemoryStore:
    store = MemoryStore()
    records = [
        Record(data, T0 + 8 * HOUR_NS, f"{number:04d}") for number, data in enumerate(frames)
    ]
    for at in range(0, len(records), size):
        part = records[at : at + size]
        report = ingest_batch(
            part, store=store, source="s", first=part[0].sequence, last=part[-1].sequence
        )
        assert report.bad == []
    return store


def at_hour(hour: int) -> str:
    return f"2026-03-01T{hour:02d}:00:00Z"


def heard(job: Job, arrived: Sequence[bytes]) -> set[tuple[int, int, int]]:
    """(process, channel's place, seq) of lines that an answer for their hour has to miss: of their process,
    a row of that hour is in a frame that arrived and was cut with them or later."""
    cut_of: dict[tuple[int, str, int], int] = {}
    for at, frame in zip(job.cuts, job.frames, strict=True):
        for entry in decode_frame(frame).streams:
            for seq in range(entry.first_seq, entry.first_seq + entry.rows):
                cut_of[entry.stream.rank or 0, entry.stream.channel, seq] = at
    there = {
        (entry.stream.rank or 0, entry.stream.channel, seq)
        for frame in arrived
        for entry in decode_frame(frame).streams
        for seq in range(entry.first_seq, entry.first_seq + entry.rows)
    }
    last: dict[tuple[int, int], int] = {}
    for process, channel, seq, ts in job.said:
        if (process, channel, seq) in there:
            key = process, ts // HOUR_NS
            last[key] = max(last.get(key, -1), cut_of[process, channel, seq])
    return {
        (process, CHANNELS.index(channel), seq)
        for process, channel, seq, ts in job.said
        if cut_of[process, channel, seq] <= last.get((process, ts // HOUR_NS), -1)
    }


def check_lines(
    job: Job, store: MemoryStore, hour: int | None, arrived: Sequence[bytes] = ()
) -> str:
    """The state of an answer, which must not be complete where a line is missing."""
    known = heard(job, arrived)
    bounds: dict[str, Any] = (
        {} if hour is None else {"since": at_hour(hour), "until": at_hour(hour + 1)}
    )
    try:
        answer = Client(store=store, tenant="acme").search("", run="llama", limit=0, **bounds)
    except NotFound:
        return "nothing"
    shown = {(line.rank, line.channel, line.seq) for line in answer.lines}
    said = {
        (process, channel, seq)
        for process, channel, seq, ts in job.said
        if channel != "telemetry"
        and (
            hour is None
            or (hour == (ts - T0) // HOUR_NS and (process, CHANNELS.index(channel), seq) in known)
        )
    }
    state: str = answer.completeness.state
    assert state != "complete" or said <= shown, (hour, said - shown, answer.completeness)
    return state


def check_points(job: Job, store: MemoryStore) -> None:
    try:
        answer = Client(store=store, tenant="acme").series("loss", run="llama")
    except NotFound:
        return
    said = sum(channel == "telemetry" for _, channel, _, _ in job.said)
    assert answer.completeness.state != "complete" or int(answer.read.sum()) == said


SAY = st.tuples(
    st.integers(0, 1),
    st.sampled_from(CHANNELS),
    st.integers(0, 9),  # which third of an hour
    st.sampled_from([20, 30]),
)
STEPS = st.lists(
    st.one_of(SAY, SAY, SAY, st.sampled_from(["cut", "fence", "restart"])),
    min_size=1,
    max_size=14,
)


def played(steps: Sequence[object], *, ended: bool) -> Job:
    job = Job()
    for step in steps:
        if isinstance(step, tuple):
            process, channel, third, level = step
            job.say(process, channel, T0 + third * HOUR_NS // 3, level)
        elif step == "cut":
            job.cut()
        elif step == "restart":
            job.restart()
        else:
            now = max((ts for *_, ts in job.said), default=T0)
            job.look(now)
    if ended:
        job.end()
    job.cut()
    return job


@settings(max_examples=150, deadline=None)
@given(STEPS, st.booleans(), st.integers(1, 4), st.randoms(use_true_random=False))
def test_no_answer_is_complete_while_a_line_is_missing(
    steps: Sequence[object], ended: bool, size: int, rng: Random
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(framing, "HEAD_LINES", 2)  # classes differ
        job = played(steps, ended=ended)
    frames = [data for data in job.frames if rng.random() < 0.6]
    rng.shuffle(frames)
    store = store_of(frames, size)
    for hour in (None, 0, 1, 2, 3):
        check_lines(job, store, hour, frames)
    check_points(job, store)


@settings(max_examples=100, deadline=None)
@given(STEPS, st.integers(1, 4), st.randoms(use_true_random=False))
def test_an_answer_is_complete_where_all_frames_arrived_in_any_order(
    steps: Sequence[object], size: int, rng: Random
) -> None:
    job = played(steps, ended=True)
    frames = rng.sample(job.frames, len(job.frames))
    state = check_lines(job, store_of(frames, size), None)
    spoke = {process for process, channel, *_ in job.said if channel != "telemetry"}
    assert spoke != {0, 1} or state == "complete"


def test_a_frame_names_the_hours_of_other_streams_of_its_process() -> None:
    job = Job()
    job.say(0, "stdout", T0)
    job.cut()  # stdout's first frame; nobody else has said anything
    job.say(0, "stdout", T0 + HOUR_NS)
    job.say(0, "stdout", T0 + HOUR_NS)
    job.cut()
    job.say(0, "logging", T0 + HOUR_NS)
    job.say(1, "logging", T0 + HOUR_NS)
    job.cut()
    hour = T0 // HOUR_NS
    own, other, told = job.entries()[-1]
    assert (own.rows, other.rows, other.fences) == (1, 1, ())
    # the hour that is over, and the open one: lines beyond the entry's seqs
    assert (told.stream.channel, told.first_seq, told.rows) == ("stdout", 1, 0)
    assert told.fences == (Fence(hour, ((0, 1),)), Fence(hour + 1, ((1, 3),)))


def test_a_stream_tells_of_an_hour_once() -> None:
    job = Job()
    for seq in range(3):
        for channel in ("telemetry", "logging"):
            job.say(0, channel, T0 + seq * SECOND_NS)
        job.cut()
    named = [
        (entry.stream.channel, entry.fences)
        for entries in job.entries()
        for entry in entries
        if not entry.rows
    ]
    assert len(named) == 2  # each of the other


def test_a_process_that_is_over_is_forgotten() -> None:
    job = Job()
    job.say(0, "stdout", T0)
    job.say(0, "logging", T0)
    job.end()
    job.cut()
    job.look(T0)
    assert not job.framer._siblings._families


def test_an_hour_that_is_told_is_not_proven() -> None:
    job = Job()
    job.say(0, "stdout", T0)
    job.cut()
    job.say(0, "telemetry", T0 + SECOND_NS)
    job.cut()
    assert check_lines(job, store_of(job.frames[1:], 1), 0) == "behind"
    assert check_lines(job, store_of(job.frames, 2), 0) == "behind"  # more may come
