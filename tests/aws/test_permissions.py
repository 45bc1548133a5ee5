"""Each role lets its function do what it does, and nothing that it never does.

A journey through all functions over moto records every call; each must be allowed by the role in template.yaml, and
each thing a role allows must have been done, but for the ones that are named here with their reason.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from ranklog import limits
from ranklog.access.manage import create_api_key, create_ingest_key
from ranklog.access.policy import Policy as AccessPolicy
from ranklog.access.policy import Quotas, write_policy
from ranklog.cli.main import main
from ranklog.delete.retention import Policy, save_policy
from ranklog.delete.tombstones import put_tombstone
from ranklog.layout import keys
from ranklog.limits import DAY_NS, HOUR_NS, MEASURES_KEPT_NS, QUARANTINE_KEPT_DAYS
from ranklog.model.record import Record
from ranklog.model.stream import Stream
from ranklog.model.tombstone import RETENTION, Tombstone
from ranklog.objectives.keeping import Part, put_part
from ranklog.objectives.measures import Measures
from ranklog.store import S3Store
from ranklog.stream.builder import FrameBuilder
from ranklog.stream.frames import encode_frame
from tests.aws import recorded
from tests.aws.conftest import Load
from tests.aws.event_source import EventSourceMapping, lambda_event
from tests.aws.events import KEY, SITE, T0_NS, frames, put_key, question
from tests.aws.gateway import Gateway
from tests.aws.lambda_client import LambdaClient
from tests.aws.recorded import Call, Recorder, recording
from tests.aws.stack import Grain, allows, functions, grains, read_template

RECORD_KEYS = {"Compact": "CompactTasks", "Retention": "RetentionTasks"}
# What Lambda, and not our code, does in a function's name.
LAMBDAS_OWN = {
    "Log": "the runtime writes what the function prints",
    "ReadFrames": "the mapping reads the stream",
    "GiveUp": "destinations of mappings and of asynchronous invocations",
    "FindWhereToGiveUp": "the mapping looks whether it may",
    "TakeTasks": "the mapping reads the queue",
    "UseKey": "S3 and Kinesis use the key for whoever calls them",
    "SendTraces": "only in invocations that Lambda samples",
}
# What is allowed though the journey does not meet it.
UNSEEN = {
    ("Scan", "s3:ListBucket", "StoreBucket"): "without it S3 says 403 of what is not there",
    ("Authorizer", "s3:ListBucket", "StoreBucket"): "likewise, of a key",
    (
        "Compact",
        "s3:PutObject",
        "StoreBucket/*/quarantine/*",
    ): "a frame that waited for its quota, and then is none",
}


class Lambdas:
    """Lambda's client of one function; the scans run here."""

    def __init__(self, name: str, scans: LambdaClient, recorder: Recorder) -> None:
        self._name, self._scans, self._recorder = name, scans, recorder

    def invoke(self, **request: Any) -> Any:
        resource = self._recorder.resources[request["FunctionName"]]
        self._recorder.calls.add(Call(self._name, "lambda:InvokeFunction", resource))
        return self._scans.invoke(**request)


@dataclass
class Journey:
    """The functions, over moto. `store` is an administrator's: nobody records it."""

    functions: dict[str, Any]
    store: S3Store
    queues: dict[str, str]
    gateway: Gateway

    def ingest(self, *data: bytes, first: int = 1) -> None:
        records = [
            Record(one, time.time_ns(), str(first + number)) for number, one in enumerate(data)
        ]
        event = lambda_event("frames", "shardId-000000000000", records)
        assert self.functions["Ingest"](event) == {"batchItemFailures": []}

    def ask(self, path: str, body: dict[str, Any] | None = None, **request: Any) -> dict[str, Any]:
        """Through the query function and through the HTTP API; the latter's answer."""
        method = "GET" if body is None else "POST"
        asked = {"tenant": "acme", "path": path, "method": method, "body": body}
        if "query" in request:
            asked["parameters"] = request["query"]
        said = self.functions["Query"]({k: v for k, v in asked.items() if v is not None})
        assert said["status"] == 200, said
        text = None if body is None else json.dumps(body)
        answer = self.gateway.request(method, path, key=KEY, body=text, **request)
        assert answer["statusCode"] == 200, answer
        found: dict[str, Any] = json.loads(answer["body"])
        return found

    def tend(self, function: str, work: str) -> None:
        """A schedule, and then its tasks, as the queue's mapping hands them over."""
        assert self.functions[function]({"work": work})["put"] > 0
        queue = boto3.client("sqs")
        while True:
            answer = queue.receive_message(
                QueueUrl=self.queues[RECORD_KEYS[function]], MaxNumberOfMessages=1
            )
            if not answer.get("Messages"):
                return
            for message in answer["Messages"]:
                assert self.functions[function]({"Records": [{"body": message["Body"]}]})
                queue.delete_message(
                    QueueUrl=self.queues[RECORD_KEYS[function]],
                    ReceiptHandle=message["ReceiptHandle"],
                )


def frame_over_hours(number: int, hours: tuple[int, ...]) -> bytes:
    """A frame of one agent with lines of several hours."""
    stream = Stream("acme", "llama-8b", "4711", 0, "gpu-09", 9, 1, "logging", "9")
    builder = FrameBuilder("acme", f"{9:016x}", number, "")
    for seq, hour in enumerate(hours):
        at_ns = T0_NS + hour * HOUR_NS
        builder.add(stream, 100 * number + seq, at_ns, 20, SITE, f"line {number}.{seq}")
    return encode_frame(builder.build())


def journey(made: Journey, patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Everything that functions do to the store, each with what it finds there."""
    # what is counted is written and read with every request
    patch.setattr("ranklog.access.meter.METER_AGE_S_MAX", 0.0)
    prepare(made.store)
    import_a_file(folder, "imported")
    damaged = bytearray(frames()[0])
    damaged[-9] ^= 0x40
    made.ingest(*frames(), b"not a frame", bytes(damaged))
    made.ingest(busy_frame(0), busy_frame(1), first=50)
    read(made, patch)
    sing(made, patch)
    made.functions["Metrics"]({})
    # after the pin: what a pin names stays
    import_a_file(folder, "later")
    for number in range(3):
        made.ingest(frame_over_hours(number, (0, 0, 0, 5, 9)), first=100 * number + 100)
    tend(made, patch)


def prepare(store: S3Store) -> None:
    """What administrators, other processes and dead ones have left."""
    put_key(store)
    now_ns = time.time_ns()
    create_ingest_key(store, "acme", now_ns=now_ns)
    write_policy(store, "acme", AccessPolicy())
    write_policy(store, "busy", AccessPolicy(quotas=Quotas(ingest_bytes_per_hour=1)))
    save_policy(store, "acme", Policy())
    store.put(keys.rule_key("acme", "loss"), b'{"version": 1, "rules": []}')
    for tenant in ("acme", "busy"):
        counts = b'{"version": 1, "counts": {"requests": 1}}'
        store.put(keys.usage_key(tenant, now_ns // HOUR_NS, "another"), counts)
        store.put(keys.rule_key(tenant, "loss"), b'{"version": 1, "rules": []}')
    for hour in (now_ns // HOUR_NS - 3, (now_ns - MEASURES_KEPT_NS) // HOUR_NS - 3):
        put_part(store, "acme", hour, "another", Part({0: Measures()}, ()))
    put_tombstone(store, "acme", Tombstone(RETENTION, 1, "test", "", "", (), (), ()))
    lease = json.dumps({"until_ns": 0}).encode()
    for hour in (T0_NS // HOUR_NS, T0_NS // HOUR_NS + 5):
        name = keys.index_hour_prefix("acme", hour).removeprefix(keys.index_prefix("acme"))
        store.put(keys.lease_key("acme", name.rstrip("/")), lease)
    store.put("acme/data/2026-01-02/03/orphan.parquet", b"never committed")


def import_a_file(folder: Path, run: str) -> None:
    """An administrator's import, of which readers and retention look up what was promised."""
    hours = (
        "01 05",
        "01 05",
        "01 06",
        "02 23",
    )  # the last two share a segment, the floor is between
    lines = [f"2026-01-{hour}:00:00,000 INFO step {n} of {run}\n" for n, hour in enumerate(hours)]
    (folder / run).write_text("".join(lines))
    words = ["--store", "s3://store", "--tenant", "acme", "--run", run, "--json"]
    assert main(["import", str(folder / run), *words]) == 0


def busy_frame(number: int) -> bytes:
    """A frame of a tenant that may send one an hour; it says of its run what a manifest does."""
    stream = Stream("busy", "llama-8b", "4711", 0, "gpu-00", 0, 0, "logging", "0")
    builder = FrameBuilder("busy", f"{0:016x}", number, "")
    builder.add(stream, number, T0_NS + number, 20, SITE, f"line {number}")
    return encode_frame(builder.build())


def read(made: Journey, patch: pytest.MonkeyPatch) -> None:
    """Questions of all kinds, by the way of functions."""
    run = {"run": "llama-8b"}
    with patch.context() as small:
        small.setattr(limits, "OUTCOME_INLINE_BYTES_MAX", 10)  # every outcome goes by the store
        assert made.ask("/v1/search", question()["body"])["lines"]
    pin = made.ask("/v1/search", {**run, "query": "step", "pin": True})["pin"]["id"]
    assert made.ask("/v1/search", {"pin": pin})["lines"]
    assert made.ask("/v1/search", {"run": "imported"})["lines"]
    for path in ("count", "outliers", "triage", "stacks", "missing"):
        made.ask(f"/v1/{path}", {**run} if path != "missing" else {**run, "query": "step"})
    made.ask("/v1/series", {**run, "query": "loss"})
    for path in ("runs", "runs/llama-8b/streams", "callsites", "patterns", "slo"):
        made.ask(f"/v1/{path}", query=run if path in ("callsites", "patterns") else {})
    cursor = made.ask("/v1/tail", query={"wait": "0"})["next"]
    for _ in range(2):
        cursor = made.ask("/v1/tail", query={"wait": "0", "cursor": cursor})["next"]
    sent = made.gateway.request("POST", "/v1/frames", key=KEY, body=frames()[0])
    assert sent["statusCode"] == 202
    administer(made)


def administer(made: Journey) -> None:
    """What an administrator may through the API; and what its role is not for."""
    key = create_api_key(made.store, "acme", ["admin"], now_ns=time.time_ns())[0]

    def ask(method: str, path: str, body: dict[str, Any] | None = None, **words: Any) -> Any:
        text = None if body is None else json.dumps(body)
        answer = made.gateway.request(method, path, key=key, body=text, **words)
        return answer["statusCode"], json.loads(answer["body"])

    question = {"run": "llama-8b", "query": '"grad_norm 0.42"'}
    assert ask("POST", "/v1/delete", question)[1]["lines"] == 1
    assert ask("POST", "/v1/retention", {"run": "nobody-*", "keep": "900d"})[0] == 200
    for path in ("retention", "actions", "usage", "audit"):
        assert ask("GET", f"/v1/{path}")[0] == 200, path
    [entry, *_] = ask("GET", "/v1/quarantine")[1]["entries"]
    assert ask("GET", "/v1/quarantine", query={"id": entry["id"]})[0] == 200
    assert ask("POST", "/v1/retention/apply", {"dry_run": True})[0] == 200
    assert ask("POST", "/v1/retention/apply", {})[0] == 403
    assert ask("POST", "/v1/quarantine/replay", {})[0] == 403


def sing(made: Journey, patch: pytest.MonkeyPatch) -> None:
    """A round of the canary, whose frame is ingested meanwhile as the mapping would."""
    mapping = EventSourceMapping(boto3.client("kinesis"), "frames", made.functions["Ingest"])
    mapping.poll()
    done = threading.Event()

    def ingest() -> None:
        while not mapping.poll() and not done.wait(0.2):
            pass

    ingesting = threading.Thread(target=ingest)
    with patch.context() as small:
        small.setattr(limits, "OUTCOME_INLINE_BYTES_MAX", 10)
        ingesting.start()
        told = made.functions["Canary"]({})
        done.set()
        ingesting.join()
    assert told["missing"] == 0, told


def tend(made: Journey, patch: pytest.MonkeyPatch) -> None:
    """Compaction now and when all graces are over; retention to a floor within an hour's lines, twice."""
    write_policy(made.store, "busy", AccessPolicy())
    made.tend("Compact", "recent")
    made.tend("Compact", "all")
    with patch.context() as later:
        module = made.functions["CompactModule"]
        later.setattr(module, "time", Later(10 * DAY_NS))
        later.setattr("ranklog.upkeep.frames.time", Later(QUARANTINE_KEPT_DAYS * DAY_NS))
        made.tend("Compact", "all")
    floor_ns = T0_NS // HOUR_NS * HOUR_NS + 7 * HOUR_NS
    save_policy(made.store, "acme", Policy().with_rule("*", time.time_ns() - floor_ns))
    # below the floor for so long that not even its hour is needed, and not compacted
    old = -limits.RETENTION_NOTES_NS // HOUR_NS
    made.ingest(frame_over_hours(7, (old, old)), first=900)
    with patch.context() as small:
        small.setattr(limits, "OUTCOME_INLINE_BYTES_MAX", 10)
        made.tend("Retention", "all")
        module = made.functions["RetentionModule"]
        opened = module.local_reader

        def later_reader(*words: Any, **options: Any) -> Any:
            reader = opened(*words, **options)
            reader.now_ns = lambda: time.time_ns() + HOUR_NS
            return reader

        small.setattr(module, "local_reader", later_reader)
        small.setattr("ranklog.delete.merging.TOMBSTONES_MAX", 0)  # so that many become one
        made.tend("Retention", "all")


class Later:
    """The time module, ahead."""

    def __init__(self, ahead_ns: int) -> None:
        self._ahead_ns = ahead_ns

    def time_ns(self) -> int:
        return time.time_ns() + self._ahead_ns


@pytest.fixture(scope="module")
def patch() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as made:
        yield made


@pytest.fixture(scope="module")
def calls(
    patch: pytest.MonkeyPatch, load_functions: Load, tmp_path_factory: pytest.TempPathFactory
) -> set[Call]:
    """What the functions did on the journey."""
    for name, value in ENVIRONMENT.items():
        patch.setenv(name, value)
    with mock_aws():
        where = {"LocationConstraint": "eu-central-1"}
        client = boto3.client("s3")
        client.create_bucket(Bucket="store", CreateBucketConfiguration=where)
        boto3.client("kinesis").create_stream(StreamName="frames", ShardCount=1)
        fifo = {"FifoQueue": "true", "ContentBasedDeduplication": "true"}
        queues = {
            name: boto3.client("sqs").create_queue(QueueName=f"{name}.fifo", Attributes=fifo)
            for name in RECORD_KEYS.values()
        }
        urls = {name: made["QueueUrl"] for name, made in queues.items()}
        recorder = Recorder(
            {url: name for name, url in urls.items()}
            | {"store": "StoreBucket", "frames": "FramesStream", "scan": "ScanFunction"}
        )
        with recording(patch, recorder):
            folder = tmp_path_factory.mktemp("journey")
            made = _loaded(patch, load_functions, recorder, client, urls, folder)
            journey(made, patch, folder)
    return recorder.calls


ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "x",
    "AWS_SECRET_ACCESS_KEY": "x",
    "AWS_REGION": "eu-central-1",
    "AWS_DEFAULT_REGION": "eu-central-1",
    "RANKLOG_STORE": "s3://store",
    "RANKLOG_STREAM": "frames",
    "RANKLOG_SCAN_FUNCTION": "scan",
    "RANKLOG_CANARY_TENANT": "acme",
    "RANKLOG_CANARY_LINES": "3",
    "RANKLOG_CANARY_SECONDS": "15",
}


def _loaded(
    patch: pytest.MonkeyPatch,
    load: Load,
    recorder: Recorder,
    client: Any,
    queues: dict[str, str],
    cache: Path,
) -> Journey:
    scans = LambdaClient()

    def lambda_client(*_: Any, **__: Any) -> Lambdas:
        return Lambdas(recorded.current.get(), scans, recorder)

    patch.setattr("ranklog.scan.lambda_invoke.aws_client", lambda_client)
    made: dict[str, Any] = {}
    for name in roles():
        function = load(name.lower())
        made[f"{name}Module"] = function.module  # type: ignore[attr-defined]
        made[name] = recorder.within(name, _in_its_process(patch, function, queues, name, cache))
    scans._functions["scan"] = made["Scan"]
    gateway = Gateway(made["Authorizer"], made["Api"])
    return Journey(made, S3Store("store", "", client), queues, gateway)


def _in_its_process(
    patch: pytest.MonkeyPatch, function: Any, queues: dict[str, str], name: str, cache: Path
) -> Any:
    """A function has an environment and a cache of its own."""

    def call(event: dict[str, Any]) -> Any:
        if name != "Scan":  # which is called by others, in their threads
            patch.setenv("XDG_CACHE_HOME", str(cache / name))
        if name in RECORD_KEYS:
            patch.setenv("RANKLOG_TASKS", queues[RECORD_KEYS[name]])
        return function(event, 1_000 * functions(read_template())[name]["Timeout"])

    return call


def roles() -> list[str]:
    return sorted(functions(read_template()))


@pytest.mark.parametrize("name", roles())
def test_a_role_allows_what_its_function_does(name: str, calls: set[Call]) -> None:
    known = list(grains(read_template(), f"{name}Role"))
    done = sorted((call.action, call.resource) for call in calls if call.function == name)
    assert done
    assert [one for one in done if not allows(known, *one)] == []


@pytest.mark.parametrize("name", roles())
def test_a_function_does_what_its_role_allows(name: str, calls: set[Call]) -> None:
    done = [(call.action, call.resource) for call in calls if call.function == name]
    idle = [
        grain
        for grain in grains(read_template(), f"{name}Role")
        if grain.effect == "Allow"
        and grain.sid not in LAMBDAS_OWN
        and (name, grain.action, grain.resource) not in UNSEEN
        and not any(grain.covers(*one) for one in done)
    ]
    assert [f"{grain.action} {grain.resource}" for grain in idle] == []


def test_no_other_function_calls_than_those_with_a_role(calls: set[Call]) -> None:
    assert {call.function for call in calls} == set(roles())


def test_a_denial_goes_before_what_is_allowed() -> None:
    known = [
        Grain("Read", "Allow", "s3:GetObject", "StoreBucket/*/config/*"),
        Grain("NoKeys", "Deny", "s3:GetObject", "StoreBucket/*/config/keys/*"),
    ]
    assert allows(known, "s3:GetObject", "StoreBucket/acme/config/access.json")
    assert not allows(known, "s3:GetObject", "StoreBucket/acme/config/keys/api/1.json")
    assert not allows(known, "s3:PutObject", "StoreBucket/acme/config/access.json")


@pytest.mark.parametrize("name", roles())
def test_keys_are_read_by_those_that_check_or_seal_with_them(name: str) -> None:
    known = list(grains(read_template(), f"{name}Role"))
    kinds = {
        kind
        for kind in ("api", "ingest")
        if allows(known, "s3:GetObject", f"StoreBucket/acme/config/keys/{kind}/0123456789ab.json")
    }
    readers = {"Authorizer": {"api"}, "Api": {"ingest"}, "Ingest": {"ingest"}, "Canary": {"ingest"}}
    assert kinds == readers.get(name, set())
