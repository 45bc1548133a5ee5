"""Series over HTTP are those of the store, in one answer or in pages."""

from __future__ import annotations

import json
import math
import threading
import urllib.request
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from ranklog.api import series as api_series
from ranklog.api.keys import Keys, hash_key
from ranklog.api.local import make_handler
from ranklog.api.serve import make_server
from ranklog.client import Client
from ranklog.client.series_answer import SeriesAnswer
from ranklog.errors import BadInput, BadQuery, TooLarge
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
    local: Client, remote: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = local.series("*", run=RUN)
    monkeypatch.setattr(api_series, "RESPONSE_BYTES_MAX", api_series._TRAILER_BYTES + 7_000)
    parts = list(remote.stream_series("*", run=RUN))
    assert len(parts) > 2
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
