"""Frames through Kinesis: limits of a call, refusals, the Lambda event, and a real socket."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from hypothesis import given
from hypothesis import strategies as st

from ranklog.errors import BadInput, NotFound
from ranklog.limits import KIB, MIB
from ranklog.model.record import Record
from ranklog.stream.kinesis import (
    PutOutcome,
    put_frames,
    read_records,
    records_from_lambda_event,
    source_of_lambda_event,
)
from ranklog.stream.partition import PARTITION_KEY_MAX, partition_key
from tests.servers import Server

EVENTS = Path(__file__).parents[2] / "events"


class FakeKinesis:
    """Answers PutRecords by a script: per call, the positions it refuses, or an exception."""

    def __init__(self, *script: set[int] | Exception) -> None:
        self.script = list(script)
        self.calls: list[list[tuple[str, bytes]]] = []

    def put_records(self, StreamName: str, Records: list[dict[str, Any]]) -> dict[str, Any]:
        self.calls.append([(record["PartitionKey"], record["Data"]) for record in Records])
        refused = self.script.pop(0) if self.script else set()
        if isinstance(refused, Exception):
            raise refused
        number = len(self.calls)
        return {
            "Records": [
                {"ErrorCode": "ProvisionedThroughputExceededException", "ErrorMessage": "slow"}
                if at in refused
                else {"SequenceNumber": f"{number}-{at}", "ShardId": "shardId-000000000000"}
                for at in range(len(Records))
            ]
        }


def client_error(code: str, status: int) -> ClientError:
    response = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(response, "PutRecords")  # type: ignore[arg-type]


def test_only_what_was_refused_is_put_again_with_growing_random_waits() -> None:
    client = FakeKinesis({1, 2}, {0}, set())
    waits: list[float] = []
    frames = [("k", b"0"), ("k", b"1"), ("k", b"2")]
    outcomes = put_frames(client, "s", frames, sleep=waits.append)
    assert outcomes == [PutOutcome("1-0"), PutOutcome("3-0"), PutOutcome("2-1")]
    assert client.calls == [frames, frames[1:], frames[1:2]]
    assert len(waits) == 2 and all(
        0 <= wait <= 0.1 * 2 ** (at + 1) for at, wait in enumerate(waits)
    )


def test_what_stays_refused_is_reported_not_raised() -> None:
    client = FakeKinesis(*[{0}] * 3)
    outcomes = put_frames(client, "s", [("k", b"0"), ("k", b"1")], attempts=3, sleep=lambda _: None)
    assert [outcome.accepted for outcome in outcomes] == [False, True]
    assert outcomes[0].reason == "ProvisionedThroughputExceededException"
    assert len(client.calls) == 3


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (client_error("ProvisionedThroughputExceededException", 400), "throttled"),
        (client_error("InternalFailure", 500), "unavailable"),
        (EndpointConnectionError(endpoint_url="http://x"), "unavailable"),
    ],
)
def test_a_call_that_fails_for_now_is_repeated(error: Exception, reason: str) -> None:
    client = FakeKinesis(error, set())
    assert put_frames(client, "s", [("k", b"0")], sleep=lambda _: None) == [PutOutcome("2-0")]
    client = FakeKinesis(error, error)
    outcomes = put_frames(client, "s", [("k", b"0")], attempts=2, sleep=lambda _: None)
    assert outcomes == [PutOutcome("", reason)]


@pytest.mark.parametrize(
    ("code", "status", "error"),
    [("ResourceNotFoundException", 400, NotFound), ("AccessDeniedException", 400, BadInput)],
)
def test_what_waiting_can_not_mend_is_raised(
    code: str, status: int, error: type[Exception]
) -> None:
    with pytest.raises(error):
        put_frames(FakeKinesis(client_error(code, status)), "s", [("k", b"0")])


def test_a_frame_over_the_record_limit_is_not_sent_and_stops_no_other() -> None:
    client = FakeKinesis()
    frames = [("k" * 10, b"x" * (MIB - 9)), ("k" * 10, b"x" * (MIB - 10))]
    outcomes = put_frames(client, "s", frames)
    assert outcomes == [PutOutcome("", "too_large"), PutOutcome("1-0")]


@given(st.lists(st.sampled_from([1, KIB, 100 * KIB, 900 * KIB]), max_size=40), st.integers(0, 1))
def test_no_call_is_over_the_limits_and_nothing_is_lost(sizes: list[int], many: int) -> None:
    client = FakeKinesis()
    frames = [("key", b"x" * size) for size in sizes] + [("key", b"")] * (1_100 * many)
    outcomes = put_frames(client, "s", frames)
    assert all(outcome.accepted for outcome in outcomes) and len(outcomes) == len(frames)
    assert [frame for call in client.calls for frame in call] == frames
    for call in client.calls:
        assert 0 < len(call) <= 500
        assert sum(len(key) + len(data) for key, data in call) <= 5 * MIB


def test_a_lambda_event_gives_records_and_their_source() -> None:
    event = json.loads((EVENTS / "ingest.json").read_text())
    records = records_from_lambda_event(event)
    assert source_of_lambda_event(event) == "ranklog-frames-shardId-000000000006"
    for record, item in zip(records, event["Records"], strict=True):
        assert record == Record(
            base64.b64decode(item["kinesis"]["data"]),
            round(item["kinesis"]["approximateArrivalTimestamp"] * 1000) * 1_000_000,
            item["kinesis"]["sequenceNumber"],
        )


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"Records": [{}]},
        {"Records": [{"Sns": {}}]},
        {"Records": [{"kinesis": {"data": "?"}}]},
        {"Records": None},
        {"Records": []},
    ],
)
def test_another_event_is_refused(event: dict[str, Any]) -> None:
    if event != {"Records": []}:
        with pytest.raises(BadInput, match="not an event of a Kinesis stream"):
            records_from_lambda_event(event)
    with pytest.raises(BadInput, match="not an event of a Kinesis stream"):
        source_of_lambda_event(event)


@given(st.tuples(st.text(max_size=300), st.text(), st.none() | st.text()))
def test_a_partition_key_fits(names: tuple[str, str, str | None]) -> None:
    key = partition_key(*names)
    assert key.isascii() and 2 <= len(key) <= PARTITION_KEY_MAX


def test_partition_keys_differ_where_names_do() -> None:
    names = [("a", "b", "c"), ("a/b", "c", ""), ("a", "b/c", ""), ("x" * 300, "r", "1")]
    names += [("x" * 300, "r", "2"), ("x" * 300, "r", None)]
    assert len({partition_key(*each) for each in names}) == len(names)
    assert partition_key("t", "llama 8b", "gpu-01") == "t/llama%208b/gpu-01"


@pytest.fixture
def kinesis(moto_server: Server) -> Iterator[Any]:
    """A client of a server with the stream `frames` of two shards."""
    client = moto_server.client("kinesis")
    client.create_stream(StreamName="frames", ShardCount=2)
    yield client
    client.delete_stream(StreamName="frames")
    client.close()


@pytest.mark.sockets
def test_frames_come_out_of_a_stream_as_they_went_in(kinesis: Any) -> None:
    frames = [(f"t/r/host{number % 5}", b"%d\x00" % number) for number in range(1_200)]
    outcomes = put_frames(kinesis, "frames", frames)
    assert all(outcome.accepted for outcome in outcomes)
    found = list(read_records(kinesis, "frames"))
    assert sorted(item.data for _, item in found) == sorted(data for _, data in frames)
    assert {shard_id for shard_id, _ in found} <= {"shardId-000000000000", "shardId-000000000001"}
    for host in range(5):
        own = [data for key, data in frames if key == f"t/r/host{host}"]
        assert [item.data for _, item in found if item.data in set(own)] == own
    last = {shard_id: item.sequence for shard_id, item in found}
    assert list(read_records(kinesis, "frames", after=last)) == []
    put_frames(kinesis, "frames", [("t/r/host0", b"new")])
    assert [item.data for _, item in read_records(kinesis, "frames", after=last)] == [b"new"]


@pytest.mark.sockets
def test_a_stream_that_is_not_there_is_not_found(kinesis: Any) -> None:
    with pytest.raises(NotFound):
        put_frames(kinesis, "nowhere", [("k", b"x")])
    with pytest.raises(NotFound):
        list(read_records(kinesis, "nowhere"))
