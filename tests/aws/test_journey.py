"""A producer's lines over real sockets to an answer: Kinesis, ingest, S3, query, scan.

Kinesis is a moto server; S3 is SeaweedFS or moto. The functions are loaded as Lambda loads them and
are called with JSON both ways under Lambda's payload limit; the event source mapping and Lambda's
Invoke are stand-ins with their documented meaning.
"""

from __future__ import annotations

import base64
import random
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ranklog.errors import Unavailable
from ranklog.model.frame import CallSite, StreamEnd
from ranklog.model.stream import Stream
from ranklog.store import S3Store
from ranklog.store.aws import aws_client
from ranklog.stream.builder import FrameBuilder
from ranklog.stream.frames import encode_frame, header_hash
from ranklog.stream.kinesis import put_frames
from ranklog.stream.partition import partition_key
from tests.aws.conftest import Load
from tests.aws.event_source import EventSourceMapping
from tests.aws.lambda_client import LambdaClient
from tests.servers import Server

pytestmark = pytest.mark.sockets

T0_NS = 1_767_323_045_000_000_000
RANKS, STEPS, FRAMES = 4, 30, 3
SITE = CallSite("trainer.py:88", "train_step", "trainer")
FAULT = "NCCL WARN Cuda failure 'an illegal memory access was encountered'"


class Deployment:
    """The stack of template.yaml: a stream, a bucket, the functions."""

    def __init__(self, load: Load, patch: pytest.MonkeyPatch, s3: Server, kinesis: Server) -> None:
        for environment in (kinesis.environment("kinesis"), s3.environment("s3")):
            for name, value in environment.items():
                patch.setenv(name, value)
        self.name = f"ranklog-{uuid.uuid4().hex[:12]}"
        self.s3, self.kinesis = aws_client("s3"), aws_client("kinesis")
        self.s3.create_bucket(
            Bucket=self.name, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"}
        )
        self.kinesis.create_stream(StreamName=self.name, ShardCount=2)
        self.store = S3Store(self.name, "logs", self.s3)
        self.ingest = load("ingest", RANKLOG_STORE=self.store.url)
        self.lambdas = LambdaClient(scan=load("scan"))
        patch.setattr("ranklog.scan.lambda_invoke.aws_client", lambda *_, **__: self.lambdas)
        self.query = load("query", RANKLOG_SCAN_FUNCTION="scan")

    def mapping(self, function: Callable[..., Any] | None = None) -> EventSourceMapping:
        return EventSourceMapping(self.kinesis, self.name, function or self.ingest)

    def search(self, query: str, **members: Any) -> dict[str, Any]:
        body = {"query": query, "run": "llama-8b", "order": "oldest", "limit": 0, **members}
        answer = self.query({"tenant": "acme", "path": "/v1/search", "body": body})
        assert answer["status"] == 200, answer
        found: dict[str, Any] = answer["body"]
        return found

    def close(self) -> None:
        self.kinesis.delete_stream(StreamName=self.name)
        for client in (self.s3, self.kinesis):
            client.close()


@pytest.fixture(params=["seaweedfs", "moto_server"])
def deployment(
    request: pytest.FixtureRequest,
    load_function: Load,
    monkeypatch: pytest.MonkeyPatch,
    moto_server: Server,
) -> Iterator[Deployment]:
    s3 = request.getfixturevalue(request.param)
    deployed = Deployment(load_function, monkeypatch, s3, moto_server)
    yield deployed
    deployed.close()


def text_of(rank: int, step: int) -> str:
    if (rank, step) == (2, 17):
        return FAULT
    return f"step {step} loss {2 + rank / 10 + step / 100:.3f} — größer"


def frames_of_the_job() -> list[tuple[str, bytes]]:
    """Frames of RANKS agents, each line once; (partition key, bytes)."""
    frames = []
    for rank in range(RANKS):
        host = f"gpu-{rank // 2:02d}"
        stream = Stream("acme", "llama-8b", "4711", 0, host, rank, rank % 2, "logging", f"{rank:x}")
        previous = ""
        for number in range(FRAMES):
            builder = FrameBuilder("acme", f"{rank:016x}", number, previous)
            for step in range(number * STEPS // FRAMES, (number + 1) * STEPS // FRAMES):
                level = 40 if text_of(rank, step) == FAULT else 20
                ts_ns = T0_NS + step * 1_000_000_000 + rank
                builder.add(stream, step, ts_ns, level, SITE, text_of(rank, step), iteration=step)
            if number == FRAMES - 1:
                builder.end(stream, StreamEnd(STEPS, 0))
            frame = builder.build()
            previous = header_hash(frame)
            frames.append((partition_key("acme", "llama-8b", host), encode_frame(frame)))
    return frames


EXPECTED = [text_of(rank, step) for step in range(STEPS) for rank in range(RANKS)]


def test_lines_of_a_job_are_found_as_they_were_logged(deployment: Deployment) -> None:
    outcomes = put_frames(deployment.kinesis, deployment.name, frames_of_the_job())
    assert all(outcome.accepted for outcome in outcomes)
    assert deployment.mapping().poll() == RANKS * FRAMES
    answer = deployment.search("")
    assert [line["text"] for line in answer["lines"]] == EXPECTED
    assert answer["completeness"]["state"] == "complete"
    assert set(deployment.lambdas.invocations) == {"scan"}
    [fault] = deployment.search("level>=ERROR rank:2")["lines"]
    assert (fault["text"], fault["rank"], fault["iteration"], fault["call_site"]) == (
        FAULT,
        2,
        17,
        "trainer.py:88",
    )
    found = deployment.search("/step 1[0-9] .*größer$/ rank:0,3")["lines"]
    assert [line["iteration"] for line in found] == [s for s in range(10, 20) for _ in range(2)]


def test_a_batch_that_is_delivered_twice_doubles_no_line(deployment: Deployment) -> None:
    put_frames(deployment.kinesis, deployment.name, frames_of_the_job())
    deployment.mapping().poll()
    before = [found.key for found in deployment.store.list("")]
    deployment.mapping().poll()  # a new mapping begins at the stream's beginning
    assert [found.key for found in deployment.store.list("")] == before
    assert [line["text"] for line in deployment.search("")["lines"]] == EXPECTED


def test_frames_that_a_producer_sends_twice_double_no_line(deployment: Deployment) -> None:
    frames = frames_of_the_job()
    random.Random(7).shuffle(frames)
    mapping = deployment.mapping()
    for part in (frames[:5], frames[3:], frames):
        put_frames(deployment.kinesis, deployment.name, part)
        mapping.poll()
    answer = deployment.search("")
    assert [line["text"] for line in answer["lines"]] == EXPECTED
    assert answer["completeness"]["state"] == "complete"
    body = {"query": "step", "run": "llama-8b"}
    count = deployment.query({"tenant": "acme", "path": "/v1/count", "body": body})
    assert count["body"]["count"] == len(EXPECTED) - 1


def test_a_poison_record_is_set_aside_and_the_rest_goes_on(deployment: Deployment) -> None:
    frames = frames_of_the_job()
    damaged = bytearray(frames[0][1])
    damaged[-9] ^= 0x40
    poison = [(frames[0][0], b"not a frame"), (frames[0][0], bytes(damaged))]
    put_frames(deployment.kinesis, deployment.name, [*poison[:1], *frames, *poison[1:]])
    mapping = deployment.mapping()
    mapping.poll()
    assert mapping.given_up == []
    assert [line["text"] for line in deployment.search("")["lines"]] == EXPECTED
    listed = [found.key for found in deployment.store.list("")]
    kept = [key for key in listed if "/quarantine/" in key and not key.endswith(".json")]
    assert sorted(deployment.store.get(key) for key in kept) == sorted(data for _, data in poison)


def test_a_batch_that_is_halved_after_it_was_stored_doubles_no_line(
    deployment: Deployment,
) -> None:
    """The function dies after its work was done: Lambda halves what is stored already."""
    put_frames(deployment.kinesis, deployment.name, frames_of_the_job())
    deaths = [0]

    def dying(event: dict[str, Any]) -> Any:
        answer = deployment.ingest(event)
        if len(event["Records"]) > 1 and deaths[0] < 3:
            deaths[0] += 1
            raise MemoryError
        return answer

    mapping = deployment.mapping(dying)
    mapping.poll()
    assert deaths[0] > 0 and len(set(mapping.delivered)) > 2 and mapping.given_up == []
    answer = deployment.search("")
    assert [line["text"] for line in answer["lines"]] == EXPECTED
    assert answer["completeness"]["state"] == "complete"


def test_a_record_that_breaks_ingest_is_alone_in_the_end_and_named(
    deployment: Deployment,
) -> None:
    """A bug of ours in one frame: all others are stored, the answer says what is missing."""
    frames = frames_of_the_job()
    put_frames(deployment.kinesis, deployment.name, frames)
    broken = frames[4][1]

    def breaking(event: dict[str, Any]) -> Any:
        if any(base64.b64decode(item["kinesis"]["data"]) == broken for item in event["Records"]):
            raise ZeroDivisionError
        return deployment.ingest(event)

    mapping = deployment.mapping(breaking)
    mapping.poll()
    [(first, last)] = mapping.given_up
    assert first == last
    answer = deployment.search("")
    missing = [text_of(1, step) for step in range(10, 20)]
    assert [line["text"] for line in answer["lines"]] == [t for t in EXPECTED if t not in missing]
    assert answer["completeness"]["state"] == "gaps"
    [gap] = answer["completeness"]["gaps"]
    assert (gap["rank"], gap["first_seq"], gap["last_seq"]) == (1, 10, 19)


def test_a_store_that_is_away_for_a_while_loses_nothing(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_frames(deployment.kinesis, deployment.name, frames_of_the_job())
    put, failures = S3Store.put, [5]

    def failing(self: S3Store, key: str, data: bytes, *, if_absent: bool = False) -> str:
        if failures[0] and "/index/" in key:
            failures[0] -= 1
            raise Unavailable("away")
        return put(self, key, data, if_absent=if_absent)

    monkeypatch.setattr(S3Store, "put", failing)
    mapping = deployment.mapping()
    mapping.retry_attempts_max = 6
    mapping.poll()
    assert mapping.given_up == [] and failures == [0]
    assert [line["text"] for line in deployment.search("")["lines"]] == EXPECTED
