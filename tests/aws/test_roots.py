"""The query and api functions over a store in a folder, their scans by way of the scan function."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ranklog import limits
from ranklog.errors import BadInput
from ranklog.store import DiskStore
from ranklog.stream import kinesis
from tests.aws.conftest import Load
from tests.aws.lambda_client import LambdaClient

Read = Callable[[str], dict[str, Any]]
KEY = "a-key-of-the-tests-and-of-nobody-else"
KEYS = json.dumps({"acme": [hashlib.sha256(KEY.encode()).hexdigest()]})
ERROR = "CUDA error: an illegal memory access was encountered"


class FakeKinesis:
    """Takes records, or refuses all."""

    def __init__(self) -> None:
        self.records: list[tuple[str, bytes]] = []
        self.refuses = False

    def put_records(self, StreamName: str, Records: list[dict[str, Any]]) -> dict[str, Any]:
        assert StreamName == "frames"
        if self.refuses:
            return {"Records": [{"ErrorCode": "ThroughputExceeded"} for _ in Records]}
        self.records += [(record["PartitionKey"], record["Data"]) for record in Records]
        return {"Records": [{"SequenceNumber": "1"} for _ in Records]}


class Stack:
    """A store with the lines of events/ingest.json, and the functions over it."""

    def __init__(self, load: Load, read_event: Read, path: Path, patch: pytest.MonkeyPatch) -> None:
        self.store = DiskStore(path)
        load("ingest", RANKLOG_STORE=self.store.url)(read_event("ingest"))
        self.lambdas = LambdaClient(scan=load("scan"))
        self.kinesis = FakeKinesis()
        clients = {"lambda": self.lambdas, "kinesis": self.kinesis}
        for module in ("ranklog.scan.lambda_invoke", "ranklog.serverless.root"):
            patch.setattr(f"{module}.aws_client", lambda service, **_: clients[service])
        patch.setattr(kinesis, "_WAIT_S", 0.0)
        patch.setenv("RANKLOG_SCAN_FUNCTION", "scan")
        self.query = load("query")
        self.api = load("api", RANKLOG_STREAM="frames", RANKLOG_API_KEYS=KEYS)


@pytest.fixture
def stack(
    load_function: Load, read_event: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Stack:
    return Stack(load_function, read_event, tmp_path / "store", monkeypatch)


def test_a_query_is_answered_by_scans_elsewhere(stack: Stack, read_event: Read) -> None:
    answer = stack.query(read_event("query"))
    assert answer["status"] == 200
    assert [line["text"] for line in answer["body"]["lines"]] == [ERROR]
    assert set(stack.lambdas.invocations) == {"scan"}


def test_counts_and_runs_are_asked_the_same_way(stack: Stack) -> None:
    count = stack.query({"tenant": "acme", "path": "/v1/count", "body": {"query": "loss"}})
    assert count["body"]["count"] == 3
    runs = stack.query({"tenant": "acme", "path": "/v1/runs"})
    assert [run["run"] for run in runs["body"]["runs"]] == ["llama-8b"]
    streams = stack.query({"tenant": "acme", "path": "/v1/runs/llama-8b/streams"})
    assert [stream["rank"] for stream in streams["body"]["streams"]] == [0, 3]


def test_a_tenant_sees_its_own_lines_only(stack: Stack) -> None:
    answer = stack.query({"tenant": "other", "path": "/v1/search", "body": {}})
    assert (answer["status"], answer["body"]["lines"]) == (200, [])


@pytest.mark.parametrize(
    "request_",
    [
        {},
        {"path": "/v1/search", "body": {}},
        {"tenant": "", "path": "/v1/search"},
        {"tenant": "acme"},
        {"tenant": "acme", "path": "/v1/search", "query": "loss"},
    ],
)
def test_a_request_without_tenant_or_path_is_refused(
    stack: Stack, request_: dict[str, Any]
) -> None:
    with pytest.raises(BadInput, match="a request with"):
        stack.query(request_)


def test_the_tenant_is_never_the_bodys(stack: Stack, read_event: Read) -> None:
    answer = stack.query(
        {"tenant": "other", "path": "/v1/search", "body": {"tenant": "acme", "query": ""}}
    )
    assert answer["status"] == 400 and "tenant" in answer["body"]["detail"]


def test_a_scan_that_breaks_is_named_in_the_answer(stack: Stack, read_event: Read) -> None:
    stack.lambdas._functions.clear()
    answer = stack.query(read_event("query"))
    assert answer["body"]["lines"] == []
    assert answer["body"]["completeness"]["state"] == "partial"
    [skipped] = answer["body"]["completeness"]["skipped_tasks"]
    assert skipped["segment"].startswith("acme/data/") and "scan" in skipped["reason"]


def test_a_root_whose_time_is_up_answers_and_names_what_was_not_read(
    stack: Stack, read_event: Read
) -> None:
    answer = stack.query(read_event("query"), remaining_ms=5_000)
    assert (answer["status"], answer["body"]["lines"]) == (200, [])
    assert answer["body"]["completeness"]["state"] == "partial"
    [skipped] = answer["body"]["completeness"]["skipped_tasks"]
    assert skipped["reason"] == "not reached in time"


def test_an_outcome_over_the_inline_limit_goes_by_the_store(
    stack: Stack, read_event: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "OUTCOME_INLINE_BYTES_MAX", 10)
    put, spilled = DiskStore.put, []

    def spy(self: DiskStore, key: str, data: bytes, **options: bool) -> str:
        spilled.append(key)
        return put(self, key, data, **options)

    monkeypatch.setattr(DiskStore, "put", spy)
    answer = stack.query(read_event("query"))
    assert [line["text"] for line in answer["body"]["lines"]] == [ERROR]
    assert spilled and all(key.startswith("_tmp/acme/") for key in spilled)
    assert list(stack.store.list("_tmp/")) == []


def test_an_answer_over_lambdas_limit_says_what_to_do(
    stack: Stack, read_event: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ranklog.serverless.root.PAYLOAD_BYTES_MAX", 1_000)
    answer = stack.query({"tenant": "acme", "path": "/v1/search", "body": {}})
    assert (answer["status"], answer["body"]["kind"]) == (413, "too_large")
    assert "cursor" in answer["body"]["hint"]


def test_who_has_the_key_searches_over_http(stack: Stack, read_event: Read) -> None:
    response = stack.api(read_event("api-search"))
    assert response["statusCode"] == 200
    assert [line["text"] for line in json.loads(response["body"])["lines"]] == [ERROR]


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer ", "Bearer wrong", f"Basic {KEY}", KEY, f"Bearer {KEY}x"]
)
@pytest.mark.parametrize("name", ["api-search", "api-frames"])
def test_who_has_no_key_gets_nothing(
    stack: Stack, read_event: Read, name: str, header: str | None
) -> None:
    event = read_event(name)
    del event["headers"]["authorization"]
    if header is not None:
        event["headers"]["authorization"] = header
    response = stack.api(event)
    assert response["statusCode"] == 401
    assert "CUDA" not in response["body"] and stack.kinesis.records == []


def test_a_client_can_not_name_its_tenant(stack: Stack, read_event: Read) -> None:
    """Neither by what an authorizer would say in a header, nor by members or parameters."""
    event = read_event("api-search")
    event["headers"] |= {"x-tenant": "other", "tenant": "other"}
    event["queryStringParameters"] = {"tenant": "other"}
    assert json.loads(stack.api(event)["body"])["lines"]


def test_a_frame_goes_into_the_stream_and_is_acknowledged_then(
    stack: Stack, read_event: Read
) -> None:
    event = read_event("api-frames")
    response = stack.api(event)
    assert response["statusCode"] == 202
    assert stack.kinesis.records == [("acme/llama-8b/gpu-00", base64.b64decode(event["body"]))]


def test_a_frame_that_the_stream_refuses_is_not_acknowledged(
    stack: Stack, read_event: Read
) -> None:
    stack.kinesis.refuses = True
    response = stack.api(read_event("api-frames"))
    assert response["statusCode"] == 503
    assert response["headers"]["Retry-After"]


def test_a_frame_of_another_tenant_is_refused(
    stack: Stack, read_event: Read, load_function: Load
) -> None:
    theirs = json.dumps({"other": [hashlib.sha256(KEY.encode()).hexdigest()]})
    api = load_function("api", RANKLOG_API_KEYS=theirs)
    assert api(read_event("api-frames"))["statusCode"] == 403
    assert stack.kinesis.records == []


def test_the_api_does_not_start_without_keys(
    stack: Stack, read_event: Read, load_function: Load
) -> None:
    api = load_function("api", RANKLOG_API_KEYS="")
    with pytest.raises(BadInput, match="RANKLOG_API_KEYS is not set"):
        api(read_event("api-search"))


def test_the_logs_hold_neither_queries_nor_keys_nor_lines(
    stack: Stack, read_event: Read, load_function: Load, capsys: pytest.CaptureFixture[str]
) -> None:
    load_function("api")(read_event("api-search"))
    load_function("query")(read_event("query"))
    out = capsys.readouterr().out
    assert '"service":"api"' in out and '"service":"query"' in out
    for secret in (KEY, "CUDA", "level>=ERROR"):
        assert secret not in out
