"""A round over a store: well where the path is, and telling of each way in which it is not."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from ranklog.canary.lines import Outcome, Round
from ranklog.canary.rounds import Writer, run_round
from ranklog.canary.writers import AsFrame, ThroughProducer, clean_environment
from ranklog.client import Client
from ranklog.errors import BadInput, Unavailable
from ranklog.ingest.batch import ingest_batch
from ranklog.ingest.local import ingest_stream
from ranklog.limits import CANARY_RUN, HOUR_NS
from ranklog.model.record import Record
from ranklog.store.memory import MemoryStore
from ranklog.stream.disk import DiskStream
from ranklog.stream.frames import decode_frame, encode_frame


@dataclass
class Way:
    """Frames into a store, a function over the frame's bytes in between; None: it is lost."""

    change: Callable[[bytes], list[bytes]] = lambda data: [data]
    store: MemoryStore = field(default_factory=MemoryStore)
    sleeps: list[float] = field(default_factory=list)
    names: Iterator[int] = field(default_factory=itertools.count)

    def accept(self, tenant: str, data: bytes) -> None:
        for frame in self.change(data):
            name = f"{next(self.names)}"
            record = Record(frame, 0, name)
            ingest_batch([record], store=self.store, source="s", first=name, last=name)

    def round(self, writer: Writer | None = None, lines: int = 6) -> Outcome:
        clock = itertools.count(0.0, 0.25)
        writer = writer or AsFrame(self.accept, "t", "h")
        return run_round(
            writer,
            Client(store=self.store, tenant="t"),
            lines=lines,
            timeout_s=2,
            clock_s=lambda: next(clock),
            sleep=self.sleeps.append,
        )


def test_a_path_that_is_well_is_well() -> None:
    path = Way()
    outcome = path.round()
    assert outcome.is_well and outcome.error is None
    assert len(outcome.ms) == 6 and path.sleeps == []
    answer = Client(store=path.store, tenant="t").search("", run=outcome.round.run_id)
    assert answer.completeness.state == "complete"
    assert [line.text for line in answer.lines] == outcome.round.texts()
    assert {line.level for line in answer.lines} == {10}


def test_rounds_of_a_day_are_one_launch() -> None:
    path = Way()
    for _ in range(3):
        assert path.round().is_well
    [row] = Client(store=path.store, tenant="t").runs().rows
    assert (row["run"], row["lines"]) == (CANARY_RUN, 18)


def test_lines_that_never_arrive_are_missing_when_the_time_is_over() -> None:
    path = Way(change=lambda data: [])
    outcome = path.round()
    assert (outcome.missing, outcome.doubled, outcome.is_well) == (6, 0, False)
    assert path.sleeps and max(path.sleeps) <= 3


def as_another_stream(data: bytes) -> list[bytes]:
    """The same lines again under another identity, which no deduplication may fold."""
    frame = decode_frame(data)
    [entry] = frame.streams
    other = replace(entry, stream=replace(entry.stream, incarnation="again"))
    return [data, encode_frame(replace(frame, agent="ff", streams=(other,)))]


def test_lines_that_come_under_two_identities_are_doubled() -> None:
    assert Way(change=as_another_stream).round().doubled == 6


def test_a_frame_that_is_delivered_twice_is_well() -> None:
    assert Way(change=lambda data: [data, data]).round().is_well


def test_text_that_changed_on_the_way_is_altered() -> None:
    def change(data: bytes) -> list[bytes]:
        frame = decode_frame(data)
        return [encode_frame(replace(frame, text=frame.text.replace(b"line 3 of", b"line 9 of")))]

    outcome = Way(change=change).round()
    assert (outcome.altered, outcome.missing) == (1, 1)


class Refuses:
    def __init__(self, error: Exception) -> None:
        self._error = error

    def write(self, lines: Round) -> None:
        raise self._error


def test_a_stream_that_takes_nothing_is_an_outcome_with_its_reason() -> None:
    outcome = Way().round(Refuses(Unavailable("throttled")))
    assert outcome.missing == 6
    assert outcome.error == "not all was written: throttled"


def test_what_can_not_be_asked_like_that_is_an_error() -> None:
    with pytest.raises(BadInput):
        Way().round(Refuses(BadInput("no such destination")))


def test_a_frame_over_the_hour_has_a_fence_for_each() -> None:
    taken: list[bytes] = []
    writer = AsFrame(lambda tenant, data: taken.append(data), "t", "h", lambda: 5 * HOUR_NS - 2)
    writer.write(Round("0" * 16, 5, "d"))
    [entry] = decode_frame(taken[0]).streams
    assert [(fence.hour, fence.ranges) for fence in entry.fences] == [
        (4, ((0, 2),)),
        (5, ((2, 5),)),
    ]


def test_a_canary_beside_a_job_is_no_rank_of_it() -> None:
    job = {"RANK": "3", "SLURM_JOB_ID": "1", "RANKLOG_RUN": "llama", "RANKLOG_SPOOL": "/s"}
    kept = {"PATH": "/bin", "RANKLOG_INGEST_KEY": "k", "RANKLOG_API_KEY": "a"}
    assert clean_environment(job | kept) == kept


class Ingesting:
    """Through a producer and an agent into a stream on disk, which is ingested after each write."""

    def __init__(self, folder: Path, store: MemoryStore) -> None:
        self._stream = DiskStream(folder, sync=False)
        self._inner = ThroughProducer(str(folder), "t", 60)
        self._store = store

    def write(self, lines: Round) -> None:
        self._inner.write(lines)
        list(ingest_stream(self._stream, self._store))


def test_the_whole_path_from_a_producer_to_a_search_is_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "8")
    path = Way()
    outcome = path.round(Ingesting(tmp_path / "stream", path.store), lines=20)
    assert outcome.to_json()["missing"] == outcome.doubled == outcome.altered == 0
    assert outcome.error is None and len(outcome.ms) == 20
    answer = Client(store=path.store, tenant="t").search(outcome.round.query)
    assert answer.completeness.state == "complete" and answer.completeness.absent == []


def test_a_destination_that_is_no_place_says_so(tmp_path: Path) -> None:
    with pytest.raises(BadInput):
        ThroughProducer("gopher://x", "t", 10).write(Round("0" * 16, 1, "d"))
