"""Requests become events, answers become responses; what others could reach needs keys and TLS."""

from __future__ import annotations

import http.client
import json
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from ranklog.api.serve import Tls, event_of, is_loopback, make_server, parse_listen
from ranklog.errors import BadInput
from ranklog.limits import REQUEST_BYTES_MAX

pytestmark = pytest.mark.sockets


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("127.0.0.1:8080", ("127.0.0.1", 8080)),
        (":9000", ("127.0.0.1", 9000)),
        ("9000", ("127.0.0.1", 9000)),
        ("[::1]:80", ("::1", 80)),
        ("0.0.0.0:0", ("0.0.0.0", 0)),
    ],
)
def test_an_address_is_host_and_port(text: str, found: tuple[str, int]) -> None:
    assert parse_listen(text) == found


@pytest.mark.parametrize("text", ["", "host:", "host:port", "host:70000"])
def test_other_addresses_are_refused(text: str) -> None:
    with pytest.raises(BadInput):
        parse_listen(text)


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("example.org", False),
    ],
)
def test_loopback_is_what_only_this_machine_reaches(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


@pytest.mark.parametrize(
    ("tls", "has_keys"),
    [(None, False), (None, True), (Tls(Path("c"), Path("k")), False)],
)
def test_an_open_address_needs_keys_and_tls(tls: Tls | None, has_keys: bool) -> None:
    with pytest.raises(BadInput, match="needs keys and TLS"):
        make_server(answer, host="0.0.0.0", port=0, tls=tls, has_keys=has_keys)


SEEN: list[dict[str, Any]] = []


def answer(event: dict[str, Any], context: Any) -> dict[str, Any]:
    SEEN.append(event)
    return {
        "statusCode": 201,
        "headers": {"Content-Type": "text/plain"},
        "body": "aGVsbG8=",
        "isBase64Encoded": True,
    }


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    made = make_server(answer, host="127.0.0.1", port=0)
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    SEEN.clear()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def connect(server: ThreadingHTTPServer) -> http.client.HTTPConnection:
    host, port = server.server_address[:2]
    return http.client.HTTPConnection(str(host), int(port), timeout=10)


def test_a_request_arrives_as_an_event_and_its_answer_goes_back(
    server: ThreadingHTTPServer,
) -> None:
    connection = connect(server)
    connection.request("POST", "/v1/a%2Fb?x=1&x=2&y=%20", b"\x00\xff", {"X-Thing": "Value"})
    response = connection.getresponse()
    assert (response.status, response.read()) == (201, b"hello")
    connection.close()
    [event] = SEEN
    assert event["rawPath"] == "/v1/a%2Fb"
    assert event["queryStringParameters"] == {"x": "1,2", "y": " "}
    assert event["headers"]["x-thing"] == "Value"
    assert (event["body"], event["isBase64Encoded"]) == ("AP8=", True)
    assert "authorizer" not in event["requestContext"]


def test_a_connection_carries_several_requests(server: ThreadingHTTPServer) -> None:
    connection = connect(server)
    for _ in range(3):
        connection.request("GET", "/v1/health")
        assert connection.getresponse().read() == b"hello"
    connection.close()
    assert len(SEEN) == 3


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Length": str(REQUEST_BYTES_MAX + 1)}, 413),
        ({"Content-Length": "ten"}, 400),
        ({"Transfer-Encoding": "chunked"}, 411),
    ],
)
def test_a_body_over_the_limit_is_refused_before_it_is_read(
    headers: dict[str, str], status: int, server: ThreadingHTTPServer
) -> None:
    connection = connect(server)
    connection.putrequest("POST", "/v1/frames")
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    response = connection.getresponse()
    assert response.status == status
    assert response.headers["Content-Type"] == "application/problem+json"
    problem = json.loads(response.read())
    assert set(problem) == {"type", "title", "status", "detail", "kind", "hint", "position"}
    connection.close()
    assert SEEN == []


def test_an_event_has_what_api_gateway_sends() -> None:
    event = event_of("GET", "/v1/runs", {"Host": "x"}, b"", "127.0.0.1")
    assert event["version"] == "2.0"
    assert event["requestContext"]["http"]["method"] == "GET"
    assert (event["body"], event["isBase64Encoded"]) == (None, False)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make a certificate")
def test_a_server_with_a_certificate_speaks_tls_only(tmp_path: Path) -> None:
    tls = Tls(tmp_path / "cert.pem", tmp_path / "key.pem")
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    paths = ["-keyout", str(tls.key), "-out", str(tls.certificate)]
    subprocess.run([*made, *names, *paths], check=True, capture_output=True)
    server = make_server(answer, host="127.0.0.1", port=0, tls=tls, has_keys=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    port = server.server_address[1]
    try:
        context = ssl.create_default_context(cafile=str(tls.certificate))
        safe = http.client.HTTPSConnection("localhost", port, timeout=10, context=context)
        safe.request("GET", "/v1/health")
        assert safe.getresponse().read() == b"hello"
        safe.close()
        clear = http.client.HTTPConnection("localhost", port, timeout=10)
        clear.request("GET", "/v1/health")
        with pytest.raises((http.client.HTTPException, OSError)):
            clear.getresponse()
        clear.close()
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_what_is_no_certificate_is_refused(tmp_path: Path) -> None:
    tls = Tls(tmp_path / "none.pem", tmp_path / "none.key")
    with pytest.raises(BadInput, match="for TLS"):
        make_server(answer, host="127.0.0.1", port=0, tls=tls)
