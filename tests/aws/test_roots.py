"""The query and api functions over a store in a folder, their scans by way of the scan function."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ranklog import limits
from ranklog.errors import BadInput
from ranklog.store import DiskStore
from ranklog.stream import kinesis
from tests.aws.conftest import Load
from tests.aws.events import KEY, put_key
from tests.aws.gateway import TTL_S, Gateway
from tests.aws.lambda_client import LambdaClient

Read = Callable[[str], dict[str, Any]]
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
        self.api = load("api", RANKLOG_STREAM="frames")
        self.now_s = 0.0
        put_key(self.store)
        self.gateway = Gateway(load("authorizer"), self.api, lambda: self.now_s)

    def ask(self, body: dict[str, Any], **request: Any) -> dict[str, Any]:
        """`POST /v1/search` through the gateway."""
        return self.gateway.request("POST", "/v1/search", body=json.dumps(body), **request)


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
        if "/measures/" not in key:
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


def test_who_has_the_key_searches_over_http(stack: Stack) -> None:
    response = stack.ask({"query": "level>=ERROR", "run": "llama-8b"}, key=KEY)
    assert response["statusCode"] == 200
    assert [line["text"] for line in json.loads(response["body"])["lines"]] == [ERROR]


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (None, 401),
        ("", 401),
        ("Bearer", 403),
        ("Bearer ", 403),
        ("Bearer wrong", 403),
        (f"Basic {KEY}", 403),
        (KEY, 403),
        (f"Bearer {KEY}x", 403),
    ],
)
@pytest.mark.parametrize("path", ["/v1/search", "/v1/frames"])
def test_who_has_no_key_gets_nothing(
    stack: Stack, read_event: Read, path: str, header: str | None, status: int
) -> None:
    body: str | bytes = "{}"
    if path == "/v1/frames":
        body = base64.b64decode(read_event("api-frames")["body"])
    headers = {} if header is None else {"Authorization": header}
    response = stack.gateway.request("POST", path, body=body, headers=headers)
    assert response["statusCode"] == status
    assert "CUDA" not in response["body"] and stack.kinesis.records == []


def test_what_no_authorizer_vouches_for_is_refused_by_the_api_itself(
    stack: Stack, read_event: Read
) -> None:
    """A route that were made without the authorizer opens nothing."""
    for name in ("api-search", "api-frames", "api-runs", "api-tail"):
        event = read_event(name)
        del event["requestContext"]["authorizer"]
        assert stack.api(event)["statusCode"] == 401
    assert stack.kinesis.records == []


def test_an_answer_of_the_authorizer_holds_for_all_routes_and_not_for_long(stack: Stack) -> None:
    for path in ("/v1/search", "/v1/count", "/v1/search"):
        assert stack.gateway.request("POST", path, key=KEY, body="{}")["statusCode"] == 200
    assert stack.gateway.asked == 1
    record = next(info.key for info in stack.store.list("acme/config/keys/api/"))
    stack.store.delete(record)
    assert stack.ask({}, key=KEY)["statusCode"] == 200
    stack.now_s += TTL_S
    assert stack.ask({}, key=KEY)["statusCode"] == 403


def test_health_and_the_description_need_no_key(stack: Stack) -> None:
    for path in ("/v1/health", "/openapi.json"):
        assert stack.gateway.request("GET", path)["statusCode"] == 200
    assert stack.gateway.asked == 0


def test_a_client_can_not_name_its_tenant(stack: Stack, read_event: Read) -> None:
    """Neither by what an authorizer would say in a header, nor by members or parameters."""
    said = {"x-tenant": "other", "tenant": "other"}
    response = stack.ask({}, key=KEY, headers=said, query={"tenant": "other"})
    assert json.loads(response["body"])["lines"]
    assert stack.ask({"tenant": "other"}, key=KEY)["statusCode"] == 400


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


def test_a_frame_of_another_tenant_is_refused(stack: Stack, read_event: Read) -> None:
    event = read_event("api-frames")
    event["requestContext"]["authorizer"]["lambda"]["tenant"] = "other"
    assert stack.api(event)["statusCode"] == 403
    assert stack.kinesis.records == []


@pytest.mark.parametrize(("scopes", "asks", "sends"), [("read", 200, 403), ("write", 403, 202)])
def test_a_key_does_what_its_scopes_say(
    stack: Stack, read_event: Read, scopes: str, asks: int, sends: int
) -> None:
    for name, status in (("api-search", asks), ("api-frames", sends)):
        event = read_event(name)
        event["requestContext"]["authorizer"]["lambda"]["scopes"] = scopes
        assert stack.api(event)["statusCode"] == status


def test_the_logs_hold_neither_queries_nor_keys_nor_lines(
    stack: Stack, read_event: Read, load_function: Load, capsys: pytest.CaptureFixture[str]
) -> None:
    load_function("api")(read_event("api-search"))
    load_function("query")(read_event("query"))
    load_function("authorizer")(read_event("authorizer"))
    out = capsys.readouterr().out
    assert all(f'"service":"{name}"' in out for name in ("api", "query", "authorizer"))
    for secret in (KEY, "CUDA", "level>=ERROR"):
        assert secret not in out


def test_a_frame_is_refused_soon_where_the_store_says_nothing_of_its_tenant(
    load_function: Load, read_event: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Hung(DiskStore):
        back = threading.Event()

        def get(self, key: str) -> bytes:
            assert self.back.wait(60)
            return super().get(key)

    monkeypatch.setattr(limits, "STORE_PROMPT_S_MAX", 0.1)
    monkeypatch.setattr(
        "ranklog.serverless.root.open_store", lambda url: Hung(url.removeprefix("file://"))
    )
    stack = Stack(load_function, read_event, tmp_path / "store", monkeypatch)
    response = stack.api(read_event("api-frames"))
    assert (response["statusCode"], response["headers"]["Retry-After"]) == (503, "2")
    assert stack.kinesis.records == []
    Hung.back.set()
