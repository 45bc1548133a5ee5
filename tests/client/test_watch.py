"""A watch over a store and over an API: it begins with what is known, reads what is new, and ends."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ranklog.api.local import make_handler
from ranklog.api.serve import make_server
from ranklog.client import Client
from ranklog.client.watch import RESTART_S, Watch, watch_rounds
from ranklog.errors import BadInput, NotFound, Unavailable
from ranklog.ingest.batch import ingest_batch
from ranklog.limits import SECOND_NS
from ranklog.model.frame import CallSite, StreamEnd
from ranklog.model.record import Record
from ranklog.model.stream import Stream
from ranklog.spmd.watch.news import Patience
from ranklog.store.memory import MemoryStore
from ranklog.stream.builder import FrameBuilder
from ranklog.stream.frames import encode_frame
from tests.point_frames import Record as Told
from tests.point_frames import point_frame

QUICK = Patience(times=3.0, floor_ns=20 * SECOND_NS)


class Job:
    """Four ranks that say something now and then, and a clock that the watch goes by."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.client = Client(store=self.store)
        self.now_s = time.time() - 4_000
        self.frames = 0
        self.at = 0
        self.points = 0
        self.watch: Watch | None = None

    def now_ns(self) -> int:
        return int(self.now_s * SECOND_NS)

    def stream(self, rank: int) -> Stream:
        return Stream("default", "job", "l", 0, "gpu-0", rank, rank, "logging", "i")

    def commit(self, *, loss: float = 2.5, ends: int | None = None, says: bool = True) -> None:
        """One iteration of every rank 5 s later; `ends`: with this code."""
        self.now_s += 5
        builder = FrameBuilder("default", "a" * 32, self.frames, "")
        for rank in range(4):
            stream = self.stream(rank)
            builder.alive(stream, self.at, self.now_ns())
            if says:
                builder.add(
                    stream,
                    self.at,
                    self.now_ns() + rank,
                    20,
                    CallSite("train.py:7", "step"),
                    f"iteration {self.at} loss {loss}",
                    iteration=self.at,
                    metadata={"loss": loss},
                )
            if ends is not None:
                builder.end(stream, StreamEnd(self.at + says, ends))
        self.at += says
        self.frames += 1
        record = Record(encode_frame(builder.build()), self.now_ns(), f"{self.frames:04d}")
        name = f"{self.frames:04d}"
        assert ingest_batch([record], store=self.store, source="t", first=name, last=name).bad == []

    def watched(self, **options: Any) -> Watch:
        return Watch(self.client, "", {"run": "job"}, patience=QUICK, now_ns=self.now_ns, **options)


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> Job:
    made = Job()
    for _ in range(12):
        made.commit()
    made.client._backend.reader.now_ns = made.now_ns  # type: ignore[attr-defined]
    return made


def said(rounds: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(alert["state"], alert["alert"]) for alert in rounds]


def test_what_was_usual_before_it_began_is_known(job: Job) -> None:
    watch = job.watched()
    assert watch.run_id == "job@l"
    assert watch.look().notices == []
    job.now_s += 60
    [alert] = watch.look().notices
    assert (alert["state"], alert["alert"], alert["run"]) == ("fired", "stalled", "job@l")
    assert alert["command"] == "ranklog search 'iteration>=11' --run job@l"
    assert [line.iteration for line in job.client.search(alert["query"], run="job").lines] == [
        11
    ] * 4
    job.commit()
    assert said(watch.look().notices) == [("resolved", "stalled")]


def test_only_what_is_new_is_read(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = job.watched()
    watch.look()
    read: list[str] = []
    real = job.store.get_range if hasattr(job.store, "get_range") else job.store.get

    def spy(key: str, *rest: Any) -> Any:
        read.append(key)
        return real(key, *rest)

    monkeypatch.setattr(job.store, real.__name__, spy)
    job.commit()
    watch.look()
    segments = {key for key in read if "/data/" in key}
    assert len(segments) <= 1


def test_a_loss_that_is_not_finite_is_told_once(job: Job) -> None:
    watch = job.watched()
    watch.look()
    job.commit(loss=float("nan"))
    assert said(watch.look().notices) == [("fired", "nan")]
    job.commit(loss=float("nan"))
    assert watch.look().notices == []


def losses(job: Job, *values: float) -> None:
    """An iteration for each value, which is the loss of two ranks as telemetry."""
    for value in values:
        job.commit()
        points = [
            Told(
                {"train/loss": value},
                ts=job.now_ns() + rank,
                iteration=job.at - 1,
                stream=replace(job.stream(rank), channel="telemetry"),
            )
            for rank in range(2)
        ]
        job.points += 1
        first = {one.stream: job.points for one in points}
        frame = encode_frame(
            point_frame(points, first_seq=first, number=job.points, tenant="default")
        )
        name = f"p{job.points:04d}"
        sent = [Record(frame, job.now_ns(), name)]
        assert ingest_batch(sent, store=job.store, source="p", first=name, last=name).bad == []


def test_a_loss_that_is_telemetry_is_told_and_resolved(job: Job, tmp_path: Path) -> None:
    state = tmp_path / "watch.json"
    losses(job, 2.5, 2.25)
    watch = job.watched(state_file=state)
    assert watch.look().notices == []
    losses(job, math.nan)
    [alert] = watch.look().notices
    assert (alert["state"], alert["alert"], alert["ranks"]) == ("fired", "nan", [0, 1])
    assert len(job.client.search(alert["query"], run="job")) > 0
    assert job.watched(state_file=state).look().notices == []
    losses(job, 2.0, 2.0)
    assert watch.look().notices == []
    losses(job, 2.0)
    assert said(watch.look().notices) == [("resolved", "nan")]


def test_a_watch_of_some_text_reads_no_points(job: Job) -> None:
    losses(job, 2.5, 2.25)
    watch = Watch(job.client, "loss", {"run": "job"}, patience=QUICK, now_ns=job.now_ns)
    watch.look()
    losses(job, math.nan)
    assert watch.look().notices == []


def test_a_watch_that_is_started_again_repeats_nothing(job: Job, tmp_path: Path) -> None:
    state = tmp_path / "watch.json"
    job.watched(state_file=state).look()
    job.now_s += 60
    assert said(job.watched(state_file=state).look().notices) == [("fired", "stalled")]
    assert job.watched(state_file=state).look().notices == []
    job.commit()
    assert said(job.watched(state_file=state).look().notices) == [("resolved", "stalled")]
    assert [path.name for path in tmp_path.iterdir()] == ["watch.json"]


def test_a_state_of_another_launch_is_passed_over_and_a_damaged_one_refused(
    job: Job, tmp_path: Path
) -> None:
    state = tmp_path / "watch.json"
    state.write_text(json.dumps({"run_id": "other@1", "cursor": "x", "watching": {}}))
    assert job.watched(state_file=state).look().notices == []
    state.write_text("{")
    with pytest.raises(BadInput, match="no state of a watch"):
        job.watched(state_file=state)
    state.write_text(json.dumps({"run_id": "job@l", "cursor": "x", "watching": {"version": 0}}))
    with pytest.raises(BadInput, match="this version"):
        job.watched(state_file=state)


def test_a_cursor_that_is_too_old_begins_with_what_is_there(job: Job, tmp_path: Path) -> None:
    state = tmp_path / "watch.json"
    job.watched(state_file=state).look()
    kept = json.loads(state.read_text())
    state.write_text(json.dumps({**kept, "cursor": "0" * 32}))
    job.now_s += 60
    assert said(job.watched(state_file=state).look().notices) == [("fired", "stalled")]


def test_it_ends_with_the_run(job: Job) -> None:
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        job.commit(ends=0 if len(slept) == 2 else None)

    rounds = list(watch_rounds(job.watched(), every_s=7, sleep=sleep))
    assert [found.state for found in rounds] == ["running", "running", "finished"]
    assert slept == [7, 7]


def test_a_run_that_failed_is_looked_at_a_minute_more(job: Job) -> None:
    clock = [0.0]

    def sleep(seconds: float) -> None:
        if not clock[0]:
            job.commit(ends=1)
        clock[0] += seconds

    rounds = list(watch_rounds(job.watched(), every_s=20, sleep=sleep, clock=lambda: clock[0]))
    assert [found.state for found in rounds] == ["running", *["failed"] * 4]
    assert clock[0] - 20 == RESTART_S
    alerts = [alert for found in rounds for alert in found.notices]
    assert [(alert["alert"], alert["ranks"]) for alert in alerts] == [("exit", [0, 1, 2, 3])]


def test_one_look_waits_for_nothing(job: Job) -> None:
    job.now_s += 60
    [found] = watch_rounds(job.watched(), once=True, sleep=pytest.fail)
    assert said(found.notices) == [("fired", "stalled")]


def test_a_store_that_does_not_answer_is_asked_again(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = job.watched()
    watch.look()

    def fail(*words: Any, **named: Any) -> Any:
        raise Unavailable("the store does not answer")

    with monkeypatch.context() as patched:
        patched.setattr(job.client._backend, "tail_page", fail)
        found = watch.look()
        assert (found.trouble, found.notices) == ("the store does not answer", [])
    job.now_s += 60
    assert said(watch.look().notices) == [("fired", "stalled")]


def test_a_run_has_to_be_named_and_to_be_there(job: Job) -> None:
    with pytest.raises(BadInput, match="which run"):
        Watch(job.client, "", {})
    with pytest.raises(NotFound):
        Watch(job.client, "", {"run": "nobody"})
    with pytest.raises(BadInput, match="which run"):
        job.client.tail_page(watch=True)


@pytest.fixture
def served(job: Job) -> Iterator[Client]:
    """The job behind an HTTP API."""
    handler = make_handler(job.store, clock_ns=job.now_ns)
    server = make_server(handler, host="127.0.0.1", port=0)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield Client(api=f"http://127.0.0.1:{server.server_address[1]}")
    server.shutdown()
    thread.join()
    server.server_close()


def test_over_an_api_it_tells_the_same(job: Job, served: Client) -> None:
    here = job.watched()
    there = Watch(served, "", {"run": "job"}, patience=QUICK, now_ns=job.now_ns)
    told: list[list[dict[str, Any]]] = []

    def look() -> None:
        mine, theirs = here.look(), there.look()
        assert (mine.notices, mine.state) == (theirs.notices, theirs.state)
        told.append(mine.notices)

    look()
    job.now_s += 60
    look()
    job.commit(loss=float("nan"))
    look()
    job.commit(loss=float("inf"), ends=0)
    look()
    assert [said(notices) for notices in told] == [
        [],
        [("fired", "stalled")],
        [("resolved", "stalled"), ("fired", "nan")],
        [("resolved", "nan")],
    ]
    assert there.look().state == "finished"


def test_a_page_of_news_has_every_stream_and_then_what_is_new(job: Job, served: Client) -> None:
    for client in (job.client, served):
        first = client.tail_page(run="job", watch=True, wait_s=0)
        assert [news.rank for news in first.streams or []] == [0, 1, 2, 3]
        assert len(first.items) == 48
        again = client.tail_page(run="job", watch=True, wait_s=0, cursor=first.next)
        assert (again.items, again.streams) == ([], [])
    plain = job.client.tail_page(run="job", wait_s=0)
    assert plain.streams is None


def test_heartbeats_without_lines_are_news(job: Job) -> None:
    first = job.client.tail_page(run="job", watch=True, wait_s=0)
    job.commit(says=False)
    page = job.client.tail_page(run="job", watch=True, wait_s=0, cursor=first.next)
    assert page.items == []
    assert {news.alive_ns for news in page.streams or []} == {job.now_ns()}
