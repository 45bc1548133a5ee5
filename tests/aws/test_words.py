"""Neither text of lines nor words of questions are ever in the functions' own logs."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ranklog.api.serve import event_of
from ranklog.limits import SECOND_NS
from ranklog.scan import evaluate as evaluation
from ranklog.serverless.invocation import Failed
from ranklog.store import DiskStore
from ranklog.stream.frames import encode_frame
from tests.aws.conftest import Load
from tests.aws.lambda_client import LambdaClient
from tests.ingest.frames import T0, Row, make_frame, stream

SAID = "password=hunter2 AKIAIOSFODNN7EXAMPLE customer-4711"
ASKED = "customer-4711"
SECRETS = (SAID, "hunter2", "AKIAIOSFODNN7EXAMPLE", "4711", "zebra-word")


def ingest_event(*frames: bytes) -> dict[str, Any]:
    records = [
        {
            "eventSource": "aws:kinesis",
            "eventSourceARN": "arn:aws:kinesis:eu-central-1:123456789012:stream/frames",
            "eventID": f"shardId-000000000000:{49_000 + at}",
            "kinesis": {
                "sequenceNumber": str(49_000 + at),
                "partitionKey": "p",
                "data": base64.b64encode(data).decode(),
                "approximateArrivalTimestamp": T0 / SECOND_NS + 1,
            },
        }
        for at, data in enumerate(frames)
    ]
    return {"Records": records}


def secret_frame() -> bytes:
    one = replace(stream(), run="llama", launch="1", certified="producer")
    rows = [Row(SAID, stream=one, metadata={"token": "hunter2"}), Row("plain", stream=one)]
    return encode_frame(make_frame(rows))


class Functions:
    """ingest, query, api and scan over one store."""

    def __init__(self, load: Load, path: Path, patch: pytest.MonkeyPatch) -> None:
        self.store = DiskStore(path)
        self.ingest = load("ingest", RANKLOG_STORE=self.store.url)
        self.scan = load("scan")
        self.lambdas = LambdaClient(scan=self.scan)
        clients = {"lambda": self.lambdas, "kinesis": self}
        for module in ("ranklog.scan.lambda_invoke", "ranklog.serverless.root"):
            patch.setattr(f"{module}.aws_client", lambda service, **_: clients[service])
        patch.setenv("RANKLOG_SCAN_FUNCTION", "scan")
        self.query = load("query")
        self.api = load("api", RANKLOG_STREAM="frames")

    def put_records(self, StreamName: str, Records: list[dict[str, Any]]) -> dict[str, Any]:
        return {"Records": [{"SequenceNumber": "1"} for _ in Records]}


Make = Callable[[], Functions]


@pytest.fixture
def make(load_function: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Called in the test: a logger keeps the output that it was made with."""
    return lambda: Functions(load_function, tmp_path / "store", monkeypatch)


def logged(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """Every line of the logs; none holds a secret, and each is JSON."""
    captured = capsys.readouterr()
    for secret in SECRETS:
        assert secret not in captured.out + captured.err
    return [json.loads(line) for line in captured.out.splitlines()]


def api_event(query: str) -> dict[str, Any]:
    event = event_of(
        "POST",
        "/v1/search",
        {"Content-Type": "application/json"},
        json.dumps({"query": query, "since": "2026-01-01"}).encode(),
        "127.0.0.1",
    )
    event["requestContext"]["authorizer"] = {"lambda": {"tenant": "acme", "scopes": "read"}}
    return event


def test_lines_and_questions_stay_out_of_the_logs(
    make: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    functions = make()
    damaged = secret_frame()[:-1] + b"\x00"
    functions.ingest(ingest_event(secret_frame(), damaged, SAID.encode()))
    asked = {"query": f'"{ASKED}" token:hunter2', "since": "2026-01-01"}
    answer = functions.query({"tenant": "acme", "path": "/v1/search", "body": asked})
    assert [line["text"] for line in answer["body"]["lines"]] == [SAID]
    for query in (f'"{ASKED}"', "zebra-word", "/hunter2|(/", "zebra-word:", "level>=hunter2"):
        functions.api(api_event(query))
    found = logged(capsys)
    services = {entry["service"] for entry in found}
    assert services == {"ingest", "query", "api", "scan"}
    messages = [entry for entry in found if "_aws" not in entry]
    assert all({"tenant", "run", "query_id"} <= entry.keys() for entry in messages)
    scans = [entry for entry in messages if entry["service"] == "scan"]
    roots = [entry for entry in messages if entry["message"] == "answered"]
    assert scans and {entry["tenant"] for entry in scans} == {"acme"}
    assert {entry["query_id"] for entry in scans} <= {entry["query_id"] for entry in roots}


def test_what_breaks_tells_no_words_either(
    make: Make,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    functions = make()
    functions.ingest(ingest_event(secret_frame()))

    def breaks(*_: object, **__: object) -> None:
        raise ValueError(SAID)

    with monkeypatch.context() as patch:
        patch.setattr(functions.ingest.module, "ingest_batch", breaks)  # type: ignore[attr-defined]
        with pytest.raises(Failed):
            functions.ingest(ingest_event(secret_frame()))
    with monkeypatch.context() as patch:
        patch.setattr(evaluation, "decode_task", breaks)
        functions.api(api_event(f'"{ASKED}"'))
    with monkeypatch.context() as patch:
        patch.setattr("ranklog.client.local.search", breaks)
        response = functions.api(api_event(f'"{ASKED}"'))
    assert response["statusCode"] == 500
    names = [entry.get("exception_name") for entry in logged(capsys)]
    assert names.count("ValueError") >= 3
