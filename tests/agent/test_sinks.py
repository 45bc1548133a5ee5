from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from ranklog.agent.sinks import (
    RETRY_AFTER_S_MAX,
    TAKEN,
    Denied,
    EachSink,
    HttpSink,
    KinesisSink,
    Outcome,
    is_refused,
    open_sink,
)
from ranklog.errors import BadInput, RanklogError, Throttled, TooLarge, Unavailable
from ranklog.stream.disk import DiskStream


class Api(BaseHTTPRequestHandler):
    """Answers with the server's `status`, remembers what was asked."""

    def do_POST(self) -> None:
        server: Any = self.server
        data = self.rfile.read(int(self.headers["Content-Length"]))
        server.seen.append((self.path, self.headers["Authorization"], data))
        self.send_response(server.status)
        self.send_header("Content-Length", "0")
        if server.retry_after:
            self.send_header("Retry-After", server.retry_after)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def api() -> Iterator[Any]:
    server: Any = HTTPServer(("127.0.0.1", 0), Api)
    server.seen, server.status, server.retry_after = [], 202, ""
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def address(api: Any) -> str:
    return f"http://127.0.0.1:{api.server_port}"


def test_a_frame_is_posted_with_the_key(api: Any) -> None:
    sink = open_sink(address(api) + "/", {"RANKLOG_API_KEY": "k1"})

    assert sink.put_all([("key", b"frame")]) == [TAKEN]
    assert api.seen == [("/v1/frames", "Bearer k1", b"frame")]


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (429, Throttled),
        (503, Unavailable),
        (401, Denied),  # a key that is set right later
        (403, Denied),
        (404, Denied),
        (502, Unavailable),
        (413, TooLarge),
        (400, BadInput),
    ],
)
def test_an_answer_is_for_now_or_for_good(api: Any, status: int, error: type[RanklogError]) -> None:
    api.status = status

    with pytest.raises(error, match=f"answered {status}") as raised:
        HttpSink(address(api), "").put("key", b"frame")
    assert type(raised.value) is error or error is Throttled


@pytest.mark.parametrize(
    ("value", "wait_s"),
    [
        ("7", 7.0),
        ("0.5", 0.5),
        ("Thu, 01 Jan 1970 00:01:40 GMT", 60.0),
        ("1e9", RETRY_AFTER_S_MAX),
        ("soon", 0.0),
        ("nan", 0.0),
        ("", 0.0),
    ],
)
def test_a_server_says_when_to_come_again(api: Any, value: str, wait_s: float) -> None:
    api.status, api.retry_after = 429, value
    sink = EachSink(HttpSink(address(api), "", clock=lambda: 40.0))

    [outcome] = sink.put_all([("key", b"frame")])
    assert isinstance(outcome.error, Throttled)
    assert outcome.retry_after_s == wait_s


def test_after_a_failure_the_rest_is_not_tried_and_what_is_refused_holds_nothing_up(
    api: Any,
) -> None:
    class Picky:
        def __init__(self) -> None:
            self.seen: list[bytes] = []

        def put(self, partition_key: str, data: bytes) -> None:
            self.seen.append(data)
            if data == b"bad":
                raise BadInput("no frame")
            if data == b"late":
                raise Unavailable("down")

    picky = Picky()
    outcomes = EachSink(picky).put_all([("k", x) for x in (b"bad", b"good", b"late", b"rest")])

    assert picky.seen == [b"bad", b"good", b"late"]
    assert [type(outcome.error) for outcome in outcomes] == [
        BadInput,
        type(None),
        Unavailable,
        Unavailable,
    ]
    assert outcomes[1] == Outcome()


def test_nobody_there_is_unavailable() -> None:
    with pytest.raises(Unavailable):
        HttpSink("http://127.0.0.1:9", "").put("key", b"frame")


class Kinesis:
    """As much of a client as `put_frames` uses."""

    def __init__(self, answer: dict[str, str]) -> None:
        self.answer = answer
        self.seen: list[dict[str, Any]] = []

    def put_records(self, StreamName: str, Records: list[dict[str, Any]]) -> dict[str, Any]:
        self.seen += Records
        return {"Records": [self.answer] * len(Records)}


def test_a_frame_is_a_kinesis_record() -> None:
    client = Kinesis({"SequenceNumber": "1", "ShardId": "s"})
    sink = KinesisSink("frames", client=client)

    assert sink.put_all([("default/demo/n0", b"frame")]) == [TAKEN]
    assert client.seen == [{"PartitionKey": "default/demo/n0", "Data": b"frame"}]


def test_a_frame_that_kinesis_can_never_take_is_too_large() -> None:
    [outcome] = KinesisSink("frames", client=Kinesis({})).put_all([("k", bytes(20 * 2**20))])

    assert isinstance(outcome.error, TooLarge)
    assert is_refused(outcome.error)


def test_destinations_are_told_apart(tmp_path: Path) -> None:
    open_sink(str(tmp_path / "a"), {}).put_all([("k", b"1")])
    open_sink(f"file://{tmp_path}/b%20c", {}).put_all([("k", b"2")])
    assert [record.data for record in DiskStream(tmp_path / "a").read()] == [b"1"]
    assert [record.data for record in DiskStream(tmp_path / "b c").read()] == [b"2"]
    with pytest.raises(BadInput, match="no known kind"):
        open_sink("ftp://x", {})
