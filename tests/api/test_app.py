"""The routes, through the handler that Lambda and `ranklog serve` call."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ranklog import limits
from ranklog._version import VERSION
from ranklog.access.api_keys import StoreKeys
from ranklog.access.grant import WRITE
from ranklog.access.manage import create_api_key
from ranklog.api import answers
from ranklog.api.app import Handler, make_api
from ranklog.api.keys import Keys, hash_key
from ranklog.api.local import make_handler
from ranklog.api.settings import Settings
from ranklog.client import Client
from ranklog.errors import StoreFull, Throttled
from ranklog.limits import REQUEST_BYTES_MAX
from ranklog.model.stream import Stream
from ranklog.store.memory import MemoryStore
from ranklog.store.prompt import Prompt
from ranklog.stream.builder import FrameBuilder
from ranklog.stream.frames import encode_frame
from tests.api.job import NOW_NS, START_NS, call, frame_of

OCTETS = {"content-type": "application/octet-stream"}


def fresh(store: MemoryStore | None = None, **options: Any) -> Handler:
    return make_handler(store or MemoryStore(), clock_ns=lambda: NOW_NS, **options)


class Away(MemoryStore):
    """Answers nothing until it is back."""

    def __init__(self) -> None:
        super().__init__()
        self.back = threading.Event()

    def get(self, key: str) -> bytes:
        self.back.wait(60)
        return super().get(key)


def test_a_frame_is_refused_soon_where_the_store_does_not_answer_for_its_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "STORE_PROMPT_S_MAX", 0.1)
    store = Away()
    key, _ = create_api_key(store, "default", [WRITE], now_ns=NOW_NS)
    handler = fresh(store, keys=StoreKeys(Prompt(store)), tenant=None)
    headers = OCTETS | {"authorization": f"Bearer {key}"}
    status, found, answered = call(handler, "POST", "/v1/frames", frame_of(), headers=headers)
    assert (status, found["kind"]) == (503, "unavailable")
    assert int(answered["Retry-After"]) > 0
    store.back.set()


@pytest.fixture(scope="module")
def api() -> Handler:
    handler = fresh()
    assert call(handler, "POST", "/v1/frames", frame_of(), headers=OCTETS)[0] == 202
    return handler


def test_a_search_answers_lines_completeness_and_report(api: Handler) -> None:
    status, found, headers = call(api, "POST", "/v1/search", {"query": "odd", "run": "job"})
    assert (status, headers["Content-Type"]) == (200, "application/json")
    assert [line["text"] for line in found["lines"]] == ["loss is odd"]
    assert (found["truncated"], found["next"]) == (False, None)
    assert found["completeness"]["state"] == "complete"
    assert found["report"]["run_ids"] == ["job@l1"]


def test_without_a_body_everything_is_asked_for(api: Handler) -> None:
    assert len(call(api, "POST", "/v1/search")[1]["lines"]) == 13


def test_what_curl_calls_a_form_is_json(api: Handler) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    found = call(api, "POST", "/v1/search", {"query": "odd"}, headers=form)[1]
    assert [line["text"] for line in found["lines"]] == ["loss is odd"]
    assert "unknown member x" in call(api, "POST", "/v1/count", {"x": 1}, headers=form)[1]["detail"]


def test_restrictions_are_members(api: Handler) -> None:
    body = {"run": "job", "rank": "0-1", "iteration": "1..3", "level": "INFO"}
    found = call(api, "POST", "/v1/search", body)[1]
    assert sorted((x["rank"], x["iteration"]) for x in found["lines"]) == [
        (0, 1),
        (0, 2),
        (1, 1),
        (1, 2),
    ]


def test_a_line_a_row_with_the_rest_last(api: Handler) -> None:
    headers = {"accept": "application/x-ndjson"}
    body = {"run": "job", "limit": 2, "fields": ["rank", "loss"]}
    status, text, shown = call(api, "POST", "/v1/search", body, headers=headers)
    rows = [json.loads(line) for line in text.splitlines()]
    assert (status, shown["Content-Type"]) == (200, "application/x-ndjson")
    assert [set(row) for row in rows[:-1]] == [{"rank", "loss"}, {"rank", "loss"}]
    assert set(rows[-1]) == {"next", "truncated", "completeness", "report"}
    assert rows[-1]["truncated"]


def test_pages_follow_each_other(api: Handler) -> None:
    seen: list[str] = []
    cursor = None
    while True:
        body = {"run": "job", "limit": 5, "order": "oldest", "cursor": cursor}
        found = call(api, "POST", "/v1/search", body)[1]
        seen += [line["id"] for line in found["lines"]]
        cursor = found["next"]
        if cursor is None:
            break
    assert len(seen) == len(set(seen)) == 13


def test_a_page_that_is_too_long_is_cut_and_has_a_cursor(
    api: Handler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "RESPONSE_BYTES_MAX", 4_000)
    found = call(api, "POST", "/v1/search", {"run": "job", "limit": 0})[1]
    assert 0 < len(found["lines"]) < 13
    assert found["truncated"]
    assert found["next"]


def test_counts_come_by_field_and_in_total(api: Handler) -> None:
    found = call(api, "POST", "/v1/count", {"run": "job", "by": ["rank"]})[1]
    assert found["groups"] == [
        {"rank": 0, "count": 4},
        {"rank": 1, "count": 4},
        {"rank": 2, "count": 5},
    ]
    assert call(api, "POST", "/v1/count", {"query": "loss", "run": "job"})[1]["count"] == 13


def test_ranks_are_compared(api: Handler) -> None:
    body = {"run": "job", "ranks": "0,2"}
    found = call(api, "POST", "/v1/compare", body)[1]["hunks"]
    assert [(hunk["op"], hunk["iteration"]) for hunk in found] == [("change", 2), ("insert", 3)]


@pytest.mark.parametrize(
    "ranks", ["0-99999999999", "0-999999," * 9, "9" * 5_000, "0-" + "9" * 5_000, [0, 10**30]]
)
def test_ranks_beyond_all_are_refused_before_they_are_counted_out(api: Handler, ranks: Any) -> None:
    assert call(api, "POST", "/v1/compare", {"run": "job", "ranks": ranks})[0] in (400, 404)


def test_runs_streams_and_call_sites_are_listed(api: Handler) -> None:
    [run] = call(api, "GET", "/v1/runs")[1]["runs"]
    assert (run["run_id"], run["lines"]) == ("job@l1", 13)
    streams = call(api, "GET", "/v1/runs/job%40l1/streams", query={"rank": "1"})[1]["streams"]
    assert [stream["rank"] for stream in streams] == [1]
    sites = call(api, "GET", "/v1/callsites", query={"run": "job"})[1]["callsites"]
    assert [(site["call_site"], site["count"]) for site in sites] == [
        ("train.py:7", 12),
        ("train.py:9", 1),
    ]


def test_an_export_is_text_or_objects(api: Handler) -> None:
    body = {"run": "job", "rank": "2", "format": "text"}
    status, text, headers = call(api, "POST", "/v1/export", body)
    assert (status, headers["Content-Type"]) == (200, "text/plain; charset=utf-8")
    assert text.splitlines()[-1] == "loss is odd"
    rows = call(api, "POST", "/v1/export", {"run": "job"})[1].splitlines()
    assert len([json.loads(row)["id"] for row in rows]) == 13


def test_an_export_has_what_matches_and_says_whether_that_is_all() -> None:
    builder = FrameBuilder("default", "a" * 32, 0, "")
    stream = Stream("default", "job", "l1", 0, "gpu-0", 0, 0, "logging", "i")
    for k, text in enumerate(["Traceback:", "  odd", "Error"]):
        builder.add(stream, k, START_NS, 40, None, text, group=0)
    api = fresh()
    call(api, "POST", "/v1/frames", encode_frame(builder.build()), headers=OCTETS)
    body = {"query": "odd", "run": "job", "format": "text"}
    status, text, headers = call(api, "POST", "/v1/export", body)
    assert (status, text) == (200, "  odd\n")
    assert headers["Ranklog-Completeness"] == "behind"


def test_the_health_and_the_description_need_no_key() -> None:
    handler = fresh(keys=Keys({"a": [hash_key("k")]}))
    assert call(handler, "GET", "/v1/health")[1] == {"status": "ok", "version": VERSION}
    described = call(handler, "GET", "/openapi.json")[1]
    assert described["openapi"].startswith("3.1")
    assert {"/v1/search", "/v1/count", "/v1/compare", "/v1/runs", "/v1/frames"} <= set(
        described["paths"]
    )


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "detail"),
    [
        ("POST", "/v1/search", {"nonsense": 1}, 400, "unknown member nonsense"),
        ("POST", "/v1/search", {"tenant": "other"}, 400, "unknown member tenant"),
        ("POST", "/v1/search", {"limit": -1}, 400, "limit: "),
        ("POST", "/v1/search", {"limit": "5"}, 400, "limit: "),
        ("POST", "/v1/search", {"rank": [1]}, 400, "rank: "),
        ("POST", "/v1/search", [1], 400, "the body: "),
        ("POST", "/v1/search", b"{", 400, "no JSON"),
        ("POST", "/v1/search", b"\xff", 400, "no UTF-8"),
        ("POST", "/v1/search", b"[" * 100_000, 400, "nested too deeply"),
        ("POST", "/v1/search", {"query": "(a"}, 400, ""),
        ("POST", "/v1/search", {"run": "nobody"}, 404, "no run named nobody"),
        ("POST", "/v1/search", b"x" * (REQUEST_BYTES_MAX + 10), 413, "limit"),
        ("POST", "/v1/compare", {}, 400, "which run"),
        ("POST", "/v1/triage", {}, 400, "which run"),
        ("POST", "/v1/triage", {"run": "job", "html": "x"}, 400, "unknown member html"),
        ("GET", "/v1/runs", None, 400, "unknown parameter tenant"),
        ("GET", "/v1/nothing", None, 404, "no such route"),
        ("DELETE", "/v1/search", None, 404, "no such route"),
        ("POST", "/v1/frames", b"no frame", 400, "the body is no frame"),
    ],
)
def test_what_is_wrong_is_a_problem(
    method: str, path: str, body: Any, status: int, detail: str, api: Handler
) -> None:
    query = {"tenant": "other"} if path == "/v1/runs" else None
    got, problem, headers = call(api, method, path, body, query=query)
    assert (got, headers["Content-Type"]) == (status, "application/problem+json")
    assert problem["status"] == status
    assert detail in problem["detail"]
    assert set(problem) == {"type", "title", "status", "detail", "kind", "hint", "position"}


def test_a_parameter_that_is_no_value_of_its_kind_is_named(api: Handler) -> None:
    status, problem, _ = call(api, "GET", "/v1/patterns", query={"limit": "x"})
    assert status == 400
    assert problem["detail"].startswith("limit: ")


def test_a_query_that_does_not_parse_says_where(api: Handler) -> None:
    problem = call(api, "POST", "/v1/search", {"query": "a rank=3"})[1]
    assert problem["kind"] == "bad_query"
    assert problem["position"] is not None


# --- tenants -------------------------------------------------------------------------------------

KEYS = Keys({"a": [hash_key("key of a")], "b": [hash_key("key of b")]})


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


@pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer wrong"}, {"authorization": "x"}])
def test_without_a_key_nobody_is_answered(headers: dict[str, str]) -> None:
    status, _, shown = call(fresh(keys=KEYS), "POST", "/v1/search", {}, headers=headers)
    assert (status, shown["WWW-Authenticate"]) == (401, "Bearer")


def test_a_tenant_sees_its_own_lines_only() -> None:
    handler = fresh(keys=KEYS)
    sent = call(handler, "POST", "/v1/frames", frame_of("a"), headers=OCTETS | bearer("key of a"))
    assert sent[0] == 202
    found = [
        len(call(handler, "POST", "/v1/search", {}, headers=bearer(key))[1]["lines"])
        for key in ("key of a", "key of b")
    ]
    assert found == [13, 0]


def test_a_frame_of_another_tenant_is_refused() -> None:
    handler = fresh(keys=KEYS)
    status, problem, _ = call(
        handler, "POST", "/v1/frames", frame_of("a"), headers=OCTETS | bearer("key of b")
    )
    assert (status, problem["kind"]) == (403, "forbidden")


def test_an_authorizer_in_front_names_the_tenant() -> None:
    handler = fresh(tenant=None)
    assert call(handler, "POST", "/v1/search", {})[0] == 401
    vouched = {"lambda": {"tenant": "a"}}
    assert call(handler, "POST", "/v1/search", {}, authorizer=vouched)[0] == 200


def test_requests_of_many_threads_do_not_meet() -> None:
    handler = fresh(keys=KEYS)
    for tenant in ("a", "b"):
        frame = frame_of(tenant, ranks=2 if tenant == "a" else 3)
        call(handler, "POST", "/v1/frames", frame, headers=OCTETS | bearer(f"key of {tenant}"))

    def lines(tenant: str) -> int:
        found = call(handler, "POST", "/v1/search", {}, headers=bearer(f"key of {tenant}"))[1]
        return len(found["lines"])

    with ThreadPoolExecutor(8) as pool:
        counted = list(pool.map(lines, ["a", "b"] * 20))
    assert counted == [9, 13] * 20


# --- frames --------------------------------------------------------------------------------------


def test_a_frame_that_is_sent_again_stores_nothing() -> None:
    handler = fresh()
    for _ in range(2):
        assert call(handler, "POST", "/v1/frames", frame_of(), headers=OCTETS)[0] == 202
    assert call(handler, "POST", "/v1/count", {})[1]["count"] == 13


@pytest.mark.parametrize("damaged", [frame_of()[:-10] + b"\0" * 10, frame_of()[:-1]])
def test_a_frame_that_ingest_would_set_aside_is_refused_while_its_sender_has_it(
    damaged: bytes,
) -> None:
    taken: list[bytes] = []

    class Kept:
        def accept(self, tenant: str, data: bytes) -> None:
            taken.append(data)

    def client(tenant: str) -> Client:
        raise AssertionError(tenant)

    handler = make_api(Settings(client, Kept(), tenant="default"))
    status, problem, _ = call(handler, "POST", "/v1/frames", damaged, headers=OCTETS)
    assert (status, problem["kind"], taken) == (400, "bad_input", [])
    assert call(handler, "POST", "/v1/frames", frame_of(), headers=OCTETS)[0] == 202
    assert taken == [frame_of()]


def test_a_frame_is_acknowledged_only_when_the_sink_has_it() -> None:
    class Full:
        def accept(self, tenant: str, data: bytes) -> None:
            raise StoreFull("no room")

    class Busy:
        def accept(self, tenant: str, data: bytes) -> None:
            raise Throttled("later")

    def client(tenant: str) -> Client:
        raise AssertionError(tenant)

    full = make_api(Settings(client, Full(), tenant="default"))
    assert call(full, "POST", "/v1/frames", frame_of(), headers=OCTETS)[0] == 507
    busy = make_api(Settings(client, Busy(), tenant="default"))
    status, _, headers = call(busy, "POST", "/v1/frames", frame_of(), headers=OCTETS)
    assert (status, int(headers["Retry-After"]) > 0) == (429, True)
    none = make_api(Settings(client, None, tenant="default"))
    assert call(none, "POST", "/v1/frames", frame_of(), headers=OCTETS)[0] == 404


def test_a_bug_is_a_problem_without_its_words(caplog: pytest.LogCaptureFixture) -> None:
    def client(tenant: str) -> Client:
        raise ZeroDivisionError("a secret")

    handler = make_api(Settings(client, tenant="default"))
    status, problem, _ = call(handler, "POST", "/v1/search", {})
    assert (status, problem["detail"]) == (500, "internal error")
