"""Series over HTTP are those of the store, in one answer or in pages."""

from __future__ import annotations

import json
import math
import socket
import threading
import urllib.request
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from ranklog.api import series as api_series
from ranklog.api import serve
from ranklog.api.keys import Keys, hash_key
from ranklog.api.local import make_handler
from ranklog.api.serve import make_server
from ranklog.client import Client
from ranklog.client import series as client_series
from ranklog.client.series_answer import SeriesAnswer
from ranklog.errors import BadInput, BadQuery, TooLarge, Unavailable
from ranklog.store.memory import MemoryStore
from tests.client.test_search import put
from tests.client.test_series import RUN, metric, put_points, record

pytestmark = pytest.mark.sockets
KEY = "the key of this test"


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    memory = MemoryStore()
    put(memory, "1", [metric(rank, i, lm_loss=3 - i / 10) for i in range(20) for rank in (0, 1)])
    noise = np.random.default_rng(3).normal(1, 0.1, 60)
    noise[40], noise[50] = 9.0, math.nan
    records = [
        record(2, i, {"grad_norm": float(v), "mfu": None}, layer=f"h.{layer}")
        for i, v in enumerate(noise)
        for layer in range(3)
    ]
    put_points(memory, "1", records)
    return memory


@pytest.fixture(scope="module")
def url(store: MemoryStore) -> Iterator[str]:
    handler = make_handler(store, keys=Keys({"acme": [hash_key(KEY)]}))
    server = make_server(handler, host="127.0.0.1", port=0)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def local(store: MemoryStore) -> Client:
    return Client(store=store, tenant="acme")


@pytest.fixture
def remote(url: str) -> Client:
    return Client(api=url, key=KEY)


def shown(answer: SeriesAnswer) -> list[dict[str, Any]]:
    """Everything but names that stand for several."""
    return [
        {name: value for name, value in one.to_json().items() if name != "written"}
        for one in answer
    ]


@pytest.mark.parametrize(
    "words",
    [
        {"query": "*"},
        {"query": "loss rank:0"},
        {"query": "grad_norm", "max_points": 8},
        {"query": "grad_norm", "by": ["layer"], "aggregate": "max", "every": "10i"},
        {"query": "*", "detect": True},
        {"query": "mfu"},
        {"query": "absent"},
    ],
)
def test_answers_are_equal(words: dict[str, Any], local: Client, remote: Client) -> None:
    here, there = local.series(run=RUN, **words), remote.series(run=RUN, **words)
    assert shown(there) == shown(here)
    assert there.trailer()["events"] == here.trailer()["events"]
    assert (there.downsampled(), there.aggregate) == (here.downsampled(), here.aggregate)
    assert there.trailer()["completeness"] == here.trailer()["completeness"]
    assert there.report.notes == here.report.notes


def test_what_does_not_fit_comes_in_pages(
    url: str, local: Client, remote: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = local.series("*", run=RUN)
    monkeypatch.setattr(api_series, "RESPONSE_BYTES_MAX", api_series._TRAILER_BYTES + 7_000)
    assert json.loads(post(url, {"query": "*", "run": RUN, "columns": True}))["next"]
    assert shown(remote.series("*", run=RUN)) == shown(whole)
    monkeypatch.setattr(api_series, "RESPONSE_BYTES_MAX", api_series._TRAILER_BYTES + 100)
    with pytest.raises(TooLarge):
        remote.series("*", run=RUN)


def post(url: str, body: dict[str, Any], accept: str = "application/json") -> str:
    headers = {
        "Authorization": f"Bearer {KEY}",
        "Content-Type": "application/json",
        "Accept": accept,
    }
    request = urllib.request.Request(url + "/v1/series", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        text: str = answer.read().decode()
    return text


def test_points_come_as_the_interfaces_have_them_a_line_each(url: str, local: Client) -> None:
    body = {"query": "loss rank:1", "run": RUN}
    *rows, last = map(json.loads, post(url, body, "application/x-ndjson").splitlines())
    assert rows == list(local.series(**body).rows())  # type: ignore[arg-type]
    assert last["report"]["bounds"]["defaulted"] is False and last["next"] is None
    whole = json.loads(post(url, body))
    assert whole["points"] == rows and whole["completeness"]["state"]


def test_errors_are_equal(local: Client, remote: Client) -> None:
    for client in (local, remote):
        with pytest.raises(BadQuery):
            client.series('"text"', run=RUN)
        with pytest.raises(BadInput):
            client.series("loss", run=RUN, max_points=3)


def test_a_stream_has_what_the_answer_has(local: Client, remote: Client) -> None:
    """Each series when it is ready; what there is to say of all of them last."""
    words: dict[str, Any] = {"run": RUN, "detect": True, "max_points": 8}
    whole = local.series("*", **words)
    *parts, last = remote.stream_series("*", **words)
    assert [len(part) for part in parts] == [1] * len(whole) and len(last) == 0
    rows = [row for part in parts for row in shown(part)]
    assert sorted(rows, key=repr) == sorted(shown(whole), key=repr)
    assert [row["series"] for row in rows] != sorted(row["series"] for row in rows)
    assert sum(part.left_out for part in parts) == whole.left_out
    assert parts[0].downsampled() is not None
    assert last.trailer()["completeness"] == whole.trailer()["completeness"]
    assert last.report.run_ids == whole.report.run_ids


def test_the_last_line_of_a_stream_speaks_of_all_series(url: str, local: Client) -> None:
    body: dict[str, Any] = {"query": "*", "run": RUN, "detect": True, "max_points": 8}
    *rows, last = map(json.loads, post(url, body, "application/x-ndjson").splitlines())
    whole = local.series(**body)
    assert sorted(map(repr, rows)) == sorted(map(repr, whole.rows()))
    trailer = whole.trailer()
    assert sorted(map(repr, last["events"])) == sorted(map(repr, trailer["events"]))
    assert last["downsampled"] == trailer["downsampled"]
    assert last["completeness"] == trailer["completeness"]


def broken_after_one(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    real = client_series.stream_series

    def parts(*given: Any) -> Iterator[SeriesAnswer]:
        yield next(iter(real(*given)))
        raise error

    monkeypatch.setattr(client_series, "stream_series", parts)


def test_a_part_comes_before_the_next_is_ready(
    remote: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what goes wrong behind it is an error with its own words, or a connection that broke off."""
    broken_after_one(monkeypatch, TooLarge("too much", hint="less"))
    found = remote.stream_series("*", run=RUN)
    assert len(next(found)) == 1
    with pytest.raises(TooLarge, match="too much"):
        list(found)


def test_a_stream_that_breaks_off_is_no_answer(
    remote: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken_after_one(monkeypatch, RuntimeError("a bug"))
    with pytest.raises(Unavailable):
        list(remote.stream_series("*", run=RUN))


def test_where_nothing_streams_the_same_lines_come_in_pages(
    local: Client, remote: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As behind Lambda."""
    monkeypatch.setattr(serve, "Caller", lambda: None)
    monkeypatch.setattr(api_series, "RESPONSE_BYTES_MAX", api_series._TRAILER_BYTES + 7_000)
    parts = list(remote.stream_series("*", run=RUN))
    rows = [row for part in parts for row in shown(part)]
    assert sorted(rows, key=repr) == sorted(shown(local.series("*", run=RUN)), key=repr)
    assert len(parts[-1]) == 0 and parts[-1].next is None


def test_a_client_of_http_1_0_gets_the_lines_and_the_end(url: str) -> None:
    host, _, port = url.removeprefix("http://").partition(":")
    body = json.dumps({"query": "loss", "run": RUN}).encode()
    head = (
        f"POST /v1/series HTTP/1.0\r\nAuthorization: Bearer {KEY}\r\nAccept: application/x-ndjson\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(head.encode() + body)
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    said, _, lines = answer.partition(b"\r\n\r\n")
    assert b"chunked" not in said
    assert "report" in [json.loads(line) for line in lines.splitlines()][-1]
