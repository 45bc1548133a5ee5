"""`python -m tests.aws.events` writes events/: one event of each trigger, from our own codecs.

They are what AWS documents of each trigger, with our bytes in it: two frames of acme's run llama-8b (four lines, one
of them an error), a question, an API key. tests/aws/test_events.py holds the folder to this module and puts each
through its handler. For `sam local invoke FUNCTION -e events/NAME.json`.
"""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from ranklog.access.grant import READ, WRITE
from ranklog.access.key_text import API, KeyText
from ranklog.access.records import hash_key, put_record, record_of
from ranklog.client.reader import local_reader
from ranklog.client.search import search
from ranklog.client.words import read_query
from ranklog.ingest.batch import ingest_batch
from ranklog.limits import HOUR_NS
from ranklog.model.frame import CallSite, StreamEnd
from ranklog.model.record import Record
from ranklog.model.stream import Stream
from ranklog.serverless.tasks import Task
from ranklog.store.memory import MemoryStore
from ranklog.store.protocol import Store
from ranklog.stream.builder import FrameBuilder
from ranklog.stream.frames import encode_frame
from tests.aws.event_source import lambda_event

FOLDER = Path(__file__).parents[2] / "events"
TENANT, RUN = "acme", "llama-8b"
REGION, ACCOUNT, STREAM_NAME = "eu-central-1", "123456789012", "ranklog-frames"
T0_NS = 1_767_323_045_000_000_000
# A key for these events alone: it is in no store that anybody uses.
KEY = KeyText(API, TENANT, "0123456789ab", b"events of ranklog, and no secret").render()
SITE = CallSite("trainer.py:88", "train_step", "trainer")
ERROR = "CUDA error: an illegal memory access was encountered"
LINES = {
    0: [(20, "step 1 loss 2.31 grad_norm 0.42"), (20, "step 2 loss 2.29 grad_norm 0.41")],
    3: [(20, "step 1 loss 2.30 grad_norm 0.44"), (40, ERROR)],
}
_SEQUENCE = 49590338271490256608559692538361571095921575989136588898


def all_events() -> dict[str, Any]:
    """Every event by the name of its file."""
    return {
        "ingest": kinesis_event(),
        "ingest-given-up": given_up(),
        "scan": scan_task(),
        "query": question(),
        "authorizer": authorizer_event("POST", "/v1/search", "POST /v1/{proxy+}"),
        "api-search": http_event(
            "POST", "/v1/search", body=json.dumps(question()["body"]), scopes=f"{READ} {WRITE}"
        ),
        "api-frames": http_event("POST", "/v1/frames", frame=frames()[0], scopes=WRITE),
        "api-runs": http_event("GET", "/v1/runs", scopes=READ),
        "api-tail": http_event("GET", "/v1/tail", query={"run": RUN, "wait": "0"}, scopes=READ),
        "api-health": http_event("GET", "/v1/health"),
        "api-openapi": http_event("GET", "/openapi.json"),
        "compact-recent": {"work": "recent"},
        "compact-all": {"work": "all"},
        "compact-task": queue_event("CompactTasks", Task(TENANT, T0_NS // HOUR_NS)),
        "retention-all": {"work": "all"},
        "retention-task": queue_event("RetentionTasks", Task(TENANT)),
        "metrics": scheduled("MetricsFunctionLook"),
        "canary": scheduled("CanaryFunctionSing"),
    }


def put_key(store: Store) -> None:
    """Make KEY one of the store's keys."""
    name, _, rest = KEY.removeprefix("rlk_").partition(".")
    key_id, _, secret = rest.partition(".")
    text = KeyText(API, TENANT, key_id, base64.urlsafe_b64decode(secret + "="))
    assert text.render() == KEY and name
    record = replace(record_of(text, "events", T0_NS), scopes=frozenset([READ, WRITE]))
    assert record.digest == hash_key(KEY)
    put_record(store, record)


def frames() -> list[bytes]:
    """A frame of each rank's agent."""
    made = []
    for rank, lines in LINES.items():
        host = f"gpu-{rank:02d}"
        stream = Stream(TENANT, RUN, "4711", 0, host, rank, rank, "logging", f"{rank:08x}")
        builder = FrameBuilder(TENANT, f"{rank:016x}", 0, "")
        for step, (level, text) in enumerate(lines):
            ts_ns = T0_NS + step * 1_000_000_000 + rank
            builder.add(stream, step, ts_ns, level, SITE, text, iteration=step + 1)
        if rank == 0:
            builder.end(stream, StreamEnd(len(lines), 0))
        made.append(encode_frame(builder.build()))
    return made


def kinesis_event() -> dict[str, Any]:
    """What the event source mapping hands ingest: one shard's records."""
    records = [
        Record(data, T0_NS + 5_651_000_000 + number * 1_000_000_000, str(_SEQUENCE + number))
        for number, data in enumerate(frames())
    ]
    event = lambda_event(STREAM_NAME, "shardId-000000000006", records)
    for record, rank in zip(event["Records"], LINES, strict=True):
        record["kinesis"]["partitionKey"] = f"{TENANT}/{RUN}/gpu-{rank:02d}"
        record["invokeIdentityArn"] = f"arn:aws:iam::{ACCOUNT}:role/ranklog-ingest"
    return event


def given_up() -> dict[str, Any]:
    """What Lambda keeps in GivenUpBucket of a batch whose time is over; `payload` is the event, as text."""
    event = kinesis_event()
    first, last = event["Records"][0], event["Records"][-1]
    return {
        "requestContext": {
            "requestId": "c9b8fa9f-5a7f-xmpl-af9c-0c604cde93a5",
            "functionArn": f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:ranklog-ingest",
            "condition": "RecordAgeExceeded",
            "approximateInvokeCount": 412,
        },
        "responseContext": {
            "statusCode": 200,
            "executedVersion": "$LATEST",
            "functionError": "Unhandled",
        },
        "version": "1.0",
        "timestamp": "2026-01-05T02:05:00.000Z",
        "KinesisBatchInfo": {
            "shardId": "shardId-000000000006",
            "startSequenceNumber": first["kinesis"]["sequenceNumber"],
            "endSequenceNumber": last["kinesis"]["sequenceNumber"],
            "approximateArrivalOfFirstRecord": "2026-01-02T03:04:10.651Z",
            "approximateArrivalOfLastRecord": "2026-01-02T03:04:11.651Z",
            "batchSize": len(event["Records"]),
            "streamArn": first["eventSourceARN"],
        },
        "payload": json.dumps(event),
    }


def question() -> dict[str, Any]:
    """What a caller with AWS credentials sends the query function."""
    return {
        "tenant": TENANT,
        "path": "/v1/search",
        "body": {"query": "level>=ERROR", "run": RUN},
    }


class _Caught(Exception):
    """Carries the first task of a query out of it."""


class _Catch:
    """An invoker that runs nothing."""

    def invoke(self, task: bytes) -> bytes:
        self.task = task
        raise _Caught


def scan_task() -> dict[str, Any]:
    """What a root sends the scan function, asked for CUDA in what ingest makes of `kinesis_event`."""
    store, catch = MemoryStore(), _Catch()
    event = kinesis_event()["Records"]
    records = [
        Record(data, T0_NS, record["kinesis"]["sequenceNumber"])
        for data, record in zip(frames(), event, strict=True)
    ]
    source = f"{STREAM_NAME}-shardId-000000000006"
    first, last = records[0].sequence, records[-1].sequence
    ingest_batch(records, store=store, source=source, first=first, last=last)
    reader = local_reader(store, TENANT, invoker=catch, concurrency=1)
    asked = read_query("CUDA", {"run": RUN}, now_ns=T0_NS, limit=1_000, order=None)
    with contextlib.suppress(_Caught):
        search(reader, asked, groups=False)
    task: dict[str, Any] = json.loads(catch.task)
    return task


def http_event(
    method: str,
    path: str,
    *,
    body: str | None = None,
    frame: bytes | None = None,
    query: dict[str, str] | None = None,
    scopes: str | None = None,
) -> dict[str, Any]:
    """What the HTTP API hands the api function (payload 2.0); `scopes` None: a route without authorizer."""
    route = route_of(method, path)
    context = _http_context(method, path, route)
    headers = _headers()
    if scopes is None:
        del headers["authorization"]
    else:
        said = {"tenant": TENANT, "scopes": scopes, "key": "0123456789ab"}
        context["authorizer"] = {"lambda": said}
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": route,
        "rawPath": path,
        "rawQueryString": "&".join(f"{name}={value}" for name, value in (query or {}).items()),
        "headers": headers,
        "requestContext": context,
        "isBase64Encoded": frame is not None,
    }
    if query:
        event["queryStringParameters"] = query
    if "{proxy+}" in route:
        event["pathParameters"] = {"proxy": path.removeprefix("/v1/")}
    if frame is not None:
        headers["content-type"] = "application/octet-stream"
        event["body"] = base64.b64encode(frame).decode()
    elif body is not None:
        headers["content-type"] = "application/json"
        event["body"] = body
    return event


def route_of(method: str, path: str) -> str:
    """The route of template.yaml that the gateway takes: the one that says most."""
    exact = {"POST /v1/frames", "GET /v1/tail", "GET /v1/health", "GET /openapi.json"}
    name = f"{method} {path}"
    return name if name in exact else f"{method} /v1/{{proxy+}}"


def authorizer_event(method: str, path: str, route: str, key: str = KEY) -> dict[str, Any]:
    """What the HTTP API asks the authorizer (payload 2.0)."""
    headers = _headers() | {"authorization": f"Bearer {key}"}
    return {
        "version": "2.0",
        "type": "REQUEST",
        "routeArn": f"arn:aws:execute-api:{REGION}:{ACCOUNT}:ranklog/$default/{method}{path}",
        "identitySource": [headers["authorization"]],
        "routeKey": route,
        "rawPath": path,
        "rawQueryString": "",
        "headers": headers,
        "requestContext": _http_context(method, path, route),
    }


def _headers() -> dict[str, str]:
    return {
        "accept": "application/json",
        "authorization": f"Bearer {KEY}",
        "host": f"ranklog.execute-api.{REGION}.amazonaws.com",
        "x-forwarded-proto": "https",
    }


def _http_context(method: str, path: str, route: str) -> dict[str, Any]:
    return {
        "accountId": ACCOUNT,
        "apiId": "ranklog",
        "domainName": f"ranklog.execute-api.{REGION}.amazonaws.com",
        "http": {
            "method": method,
            "path": path,
            "protocol": "HTTP/1.1",
            "sourceIp": "192.0.2.1",
            "userAgent": "curl/8.5.0",
        },
        "requestId": "JKJaXmPLvHcESHA=",
        "routeKey": route,
        "stage": "$default",
        "time": "02/Jan/2026:03:05:00 +0000",
        "timeEpoch": 1767323100000,
    }


def queue_event(queue: str, task: Task) -> dict[str, Any]:
    """What the queue's mapping hands compact and retention."""
    return {
        "Records": [
            {
                "messageId": "059f36b4-87a3-44ab-83d2-661975830a7d",
                "receiptHandle": "AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a",
                "body": task.render(),
                "attributes": {
                    "ApproximateReceiveCount": "1",
                    "SentTimestamp": "1767323100000",
                    "MessageGroupId": task.group,
                    "SequenceNumber": "18849496460467696128",
                },
                "messageAttributes": {},
                "eventSource": "aws:sqs",
                "eventSourceARN": f"arn:aws:sqs:{REGION}:{ACCOUNT}:ranklog-{queue}.fifo",
                "awsRegion": REGION,
            }
        ]
    }


def scheduled(rule: str) -> dict[str, Any]:
    """What a rule of EventBridge without an input of its own sends."""
    return {
        "version": "0",
        "id": "53dc4d37-cffa-4f76-80c9-8b7d4a4d2eaa",
        "detail-type": "Scheduled Event",
        "source": "aws.events",
        "account": ACCOUNT,
        "time": "2026-01-02T03:05:00Z",
        "region": REGION,
        "resources": [f"arn:aws:events:{REGION}:{ACCOUNT}:rule/ranklog-{rule}"],
        "detail": {},
    }


def rendered() -> Iterator[tuple[Path, str]]:
    """Every file and its text."""
    for name, event in all_events().items():
        yield FOLDER / f"{name}.json", json.dumps(event, indent=2) + "\n"


if __name__ == "__main__":
    for path, text in rendered():
        path.write_text(text)
