from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from ranklog.agent.sinks import HttpSink, KinesisSink, open_sink
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
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def api() -> Iterator[Any]:
    server: Any = HTTPServer(("127.0.0.1", 0), Api)
    server.seen, server.status = [], 202
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def address(api: Any) -> str:
    return f"http://127.0.0.1:{api.server_port}"


def test_a_frame_is_posted_with_the_key(api: Any) -> None:
    open_sink(address(api) + "/", {"RANKLOG_API_KEY": "k1"}).put("key", b"frame")

    assert api.seen == [("/v1/frames", "Bearer k1", b"frame")]


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (429, Throttled),
        (503, Unavailable),
        (401, Unavailable),  # a key that is set right later
        (413, TooLarge),
        (400, BadInput),
    ],
)
def test_an_answer_is_for_now_or_for_good(api: Any, status: int, error: type[RanklogError]) -> None:
    api.status = status

    with pytest.raises(error, match=f"answered {status}"):
        HttpSink(address(api), "").put("key", b"frame")


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
    KinesisSink("frames", client=client).put("default/demo/n0", b"frame")

    assert client.seen == [{"PartitionKey": "default/demo/n0", "Data": b"frame"}]


def test_a_frame_that_kinesis_can_never_take_is_too_large() -> None:
    with pytest.raises(TooLarge):
        KinesisSink("frames", client=Kinesis({})).put("k", bytes(20 * 2**20))


def test_destinations_are_told_apart(tmp_path: Path) -> None:
    assert isinstance(open_sink(str(tmp_path / "a"), {}), DiskStream)
    assert isinstance(open_sink(f"file://{tmp_path}/b%20c", {}), DiskStream)
    assert (tmp_path / "b c").is_dir()
    with pytest.raises(BadInput, match="no known kind"):
        open_sink("ftp://x", {})
