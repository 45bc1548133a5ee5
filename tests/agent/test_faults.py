"""An agent whose credentials run out, or whose clock jumps: it goes on, and nothing is lost."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError, NoCredentialsError

from ranklog.agent import sinks
from ranklog.agent.sending import RETRY_MAX_S, Sender
from ranklog.agent.sinks import KinesisSink, Outcome
from ranklog.agent.store_sink import StoreSink
from ranklog.agent.wal import Wal
from ranklog.agent.wal_segment import WalFrame
from ranklog.client import Client
from ranklog.errors import BadInput, Unavailable
from ranklog.store.aws import RENEW_S, Renewed, aws_client
from ranklog.stream import kinesis
from ranklog.stream.frames import encode_frame
from tests.agent.test_sending import Clock
from tests.ingest.frames import STREAM, Row, make_frame


def refused(code: str, status: int = 400) -> ClientError:
    answer = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "PutRecords")


class Kinesis:
    """Takes what comes while its credentials are valid."""

    def __init__(self, taken: list[bytes], *faults: Exception) -> None:
        self.taken, self.faults = taken, list(faults)

    def put_records(self, StreamName: str, Records: Sequence[dict[str, Any]]) -> dict[str, Any]:
        if self.faults:
            raise self.faults.pop(0) if len(self.faults) > 1 else self.faults[0]
        self.taken += [record["Data"] for record in Records]
        return {"Records": [{"SequenceNumber": str(i)} for i in range(len(Records))]}


@pytest.fixture
def log(tmp_path: Path) -> Wal:
    wal = Wal(tmp_path / "wal")
    for name in (b"a", b"b"):
        wal.append([WalFrame(0, "k", name)], {})
    return wal


@pytest.mark.parametrize(
    "error",
    [
        refused("ExpiredTokenException"),
        refused("AccessDeniedException"),
        refused("UnrecognizedClientException"),
        NoCredentialsError(),
    ],
    ids=lambda error: str(error)[:40],
)
def test_frames_wait_while_credentials_are_lost_and_go_with_new_ones(
    error: Exception, log: Wal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[bytes] = []
    made = [Kinesis(taken, error), Kinesis(taken, error), Kinesis(taken)]
    monkeypatch.setattr(sinks, "_kinesis_client", lambda region: made.pop(0))
    clock = Clock()
    sender = Sender(log, KinesisSink("frames"), tmp_path / "refused", clock=clock)
    steps = 0
    while log.unsent and steps < 20:
        sender.step()
        clock.now += RETRY_MAX_S
        steps += 1
    assert (taken, steps, sender.refused) == ([b"a", b"b"], 3, 0)


@pytest.mark.parametrize(
    "error",
    [
        refused("ProvisionedThroughputExceededException"),
        refused("InternalFailure", 503),
        refused("SlowDown", 503),
        ConnectTimeoutError(endpoint_url="https://kinesis"),
    ],
    ids=lambda error: str(error)[:40],
)
def test_what_passes_is_tried_again_with_growing_bounded_waits(
    error: Exception, log: Wal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kinesis, "put_frames", partial(kinesis.put_frames, attempts=1))
    taken: list[bytes] = []
    client = Kinesis(taken, error)
    clock, draws = Clock(), []

    def longest(low: float, high: float) -> float:
        draws.append((low, high))
        return high

    sink = KinesisSink("frames", client=client)
    sender = Sender(log, sink, tmp_path / "refused", clock=clock, draw=longest)
    for _ in range(15):
        sender.step()
        clock.now = sender.retry_at
    assert {low for low, _ in draws} == {0.0}
    assert [high for _, high in draws[:3]] == [0.2, 0.4, 0.8]
    assert max(high for _, high in draws) == RETRY_MAX_S
    client.faults.clear()
    assert sender.step()
    assert (taken, log.unsent, sender.refused) == ([b"a", b"b"], 0, 0)


def test_a_store_that_refuses_our_credentials_refuses_no_frame(
    log: Wal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ranklog.agent import store_sink

    def no_credentials(*_: object, **__: object) -> None:
        raise BadInput("Unable to locate credentials")

    monkeypatch.setattr(store_sink, "ingest_batch", no_credentials)
    sink = StoreSink(str(tmp_path / "store"))
    outcomes = sink.put_all([("k", b"a"), ("k", b"b")])
    assert [type(outcome.error) for outcome in outcomes] == [Unavailable, Unavailable]


def test_frames_between_those_that_a_dead_agent_had_stored_are_stored_too(tmp_path: Path) -> None:
    """It sent what is kept longest first, and could not note it: the next one sends all."""
    frames = [
        ("k", encode_frame(make_frame([Row(f"line {n}")], first_seq={STREAM: n}, number=n)))
        for n in range(4)
    ]
    for chosen in (frames[::3], frames):
        outcomes = StoreSink(str(tmp_path / "store")).put_all(chosen)
        assert [one.error for one in outcomes] == [None] * len(chosen)
    found = Client(store=str(tmp_path / "store"), tenant="acme").search("line", order="oldest")
    assert [line.text for line in found.lines] == [f"line {n}" for n in range(4)]


def test_a_client_is_made_anew_when_its_credentials_ran_out_but_not_at_every_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[object] = []

    def make(*_: object, **__: object) -> object:
        made.append(object())
        return made[-1]

    monkeypatch.setattr("ranklog.store.aws.aws_client", make)
    now = [100.0]
    monkeypatch.setattr("ranklog.store.aws.time.monotonic", lambda: now[0])
    renewed = Renewed("s3")
    first = renewed.client
    renewed.note(refused("ExpiredToken"))
    assert renewed.client is first
    now[0] += RENEW_S
    renewed.note(refused("SlowDown", 503))
    assert renewed.client is first
    renewed.note(refused("ExpiredToken"))
    renewed.note(refused("ExpiredToken"))
    assert (len(made), renewed.client is made[1]) == (2, True)


def test_a_new_client_reads_the_credentials_that_were_put_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "credentials"
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    seen = []
    for key in ("OLD", "NEW"):
        path.write_text(f"[default]\naws_access_key_id = {key}\naws_secret_access_key = s\n")
        client = aws_client("s3", region="us-east-1")
        seen.append(client._request_signer._credentials.access_key)
    assert seen == ["OLD", "NEW"]


def test_the_clock_of_lines_does_not_follow_the_wall_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    from ranklog.produce import clock

    before = clock.now_ns()
    monkeypatch.setattr("time.time_ns", lambda: before - 5 * 3_600_000_000_000)
    monkeypatch.setattr("time.time", lambda: 0.0)
    assert 0 <= clock.now_ns() - before < 60_000_000_000


def test_an_agent_whose_wall_clock_jumped_before_it_began_again_keeps_the_order_of_a_stream() -> (
    None
):
    from ranklog.agent.framer import Framer
    from ranklog.agent.rows import Row, StreamState
    from ranklog.limits import HOUR_NS
    from ranklog.stream.frames import decode_frame
    from tests.agent.reading import lines_of
    from tests.stream.test_frames import stream

    framer, state = Framer("agent"), StreamState(stream(0))
    times = [100 * HOUR_NS, 95 * HOUR_NS, 130 * HOUR_NS, 90 * HOUR_NS]
    for number, ts in enumerate(times):
        framer.fence_past_hours([state], ts)
        framer.add(state, Row(ts, [f"line {number}".encode()]))
    framer.end(state, 0)
    frames, _ = framer.cut()
    decoded = [decode_frame(frame.data) for frame in frames]
    lines = sorted((line for frame in decoded for line in lines_of(frame)), key=lambda x: x.seq)
    assert [(line.seq, line.text) for line in lines] == [(i, f"line {i}") for i in range(4)]
    assert [line.ts_ns for line in lines] == sorted(line.ts_ns for line in lines)
    fences = [fence for frame in decoded for e in frame.streams for fence in e.fences]
    assert [pair for fence in fences for pair in fence.ranges] == [(0, 2), (2, 4)]


def test_outcomes_of_a_put_that_timed_out_are_unknown_and_so_repeated(
    log: Wal, tmp_path: Path
) -> None:
    """Kinesis may have it: it is sent again, and stored once by its numbers."""
    taken: list[bytes] = []

    class Late(Kinesis):
        def put_records(self, StreamName: str, Records: Sequence[dict[str, Any]]) -> dict[str, Any]:
            answer = super().put_records(StreamName, Records)
            if len(self.taken) == 2:
                raise ConnectTimeoutError(endpoint_url="https://kinesis")
            return answer

    sink = KinesisSink("frames", client=Late(taken))
    outcomes: list[Outcome] = sink.put_all([("k", b"a"), ("k", b"b")])
    assert all(outcome.error is None for outcome in outcomes)
    assert taken == [b"a", b"b"] * 2
