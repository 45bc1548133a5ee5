"""S3's failures in our words, over a real socket whose answers the test chooses."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import boto3
import pytest
from botocore.config import Config

from ranklog.errors import (
    AlreadyExists,
    BadInput,
    Corrupt,
    NotFound,
    RanklogError,
    StoreFull,
    Throttled,
    Unavailable,
)
from ranklog.store import S3Store
from ranklog.store.aws import aws_client

pytestmark = pytest.mark.sockets


class Script:
    """What to answer, one entry a request: (status, error code) or (status, body, length)."""

    def __init__(self) -> None:
        self.answers: list[tuple[Any, ...]] = []
        self.seen: list[tuple[str, str, dict[str, str]]] = []


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
def store(script: Script, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Store]:
    """A store on the scripted server; botocore makes one attempt, waits are skipped."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            script.seen.append((self.command, self.path, dict(self.headers)))
            status, what, *length = script.answers.pop(0)
            data = what if isinstance(what, bytes) else error_body(what)
            self.send_response(status)
            self.send_header("ETag", '"e"')
            self.send_header("Content-Length", str(length[0] if length else len(data)))
            self.end_headers()
            self.wfile.write(data)
            self.close_connection = bool(length) or body is None

        do_GET = do_PUT = do_DELETE = handle_one

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    monkeypatch.setattr("ranklog.store.s3._CONFLICT_WAIT_S", 0.001)
    client = boto3.client(
        "s3",
        endpoint_url=f"http://127.0.0.1:{server.server_port}",
        region_name="eu-central-1",
        aws_access_key_id="k",
        aws_secret_access_key="s",
        config=Config(
            retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}, proxies={}
        ),
    )
    yield S3Store("b", "p", client)
    client.close()
    server.shutdown()
    thread.join()
    server.server_close()


def error_body(code: str) -> bytes:
    return (
        f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>told</Message></Error>".encode()
    )


@pytest.mark.parametrize(
    ("status", "code", "error"),
    [
        (404, "NoSuchKey", NotFound),
        (404, "NoSuchBucket", NotFound),
        (503, "SlowDown", Throttled),
        (429, "TooManyRequests", Throttled),
        (500, "InternalError", Unavailable),
        (503, "ServiceUnavailable", Unavailable),
        (400, "RequestTimeout", Unavailable),
        (403, "AccessDenied", BadInput),
        (403, "SignatureDoesNotMatch", BadInput),
        (507, "InsufficientStorage", StoreFull),
        (416, "InvalidRange", Corrupt),
    ],
)
def test_an_answer_of_s3_is_one_of_our_errors(
    store: S3Store, script: Script, status: int, code: str, error: type[RanklogError]
) -> None:
    for call in (
        lambda: store.get_range("k", 0, 4),
        lambda: store.put("k", b"x"),
        lambda: list(store.list("")),
    ):
        script.answers = [(status, code)]
        with pytest.raises(RanklogError) as raised:
            call()
        assert type(raised.value) is error
        assert raised.value.message.startswith("s3://b/p/")
        assert "p/p/" not in raised.value.message
        assert "\n" not in str(raised.value)


def test_a_bucket_that_is_not_there_is_to_be_made(store: S3Store, script: Script) -> None:
    script.answers = [(404, "NoSuchBucket")]
    with pytest.raises(NotFound) as raised:
        store.put("k", b"x")
    assert "aws s3 mb s3://" in str(raised.value)
    assert "credentials" not in str(raised.value)


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ([(412, "PreconditionFailed")], AlreadyExists),
        ([(409, "ConditionalRequestConflict"), (412, "PreconditionFailed")], AlreadyExists),
        ([(409, "ConditionalRequestConflict"), (200, b"")], None),
        ([(409, "ConditionalRequestConflict")] * 6, Unavailable),
        ([(503, "SlowDown")], Throttled),
    ],
)
def test_create_once_asks_again_until_a_winner_is_known(
    store: S3Store, script: Script, answers: list[tuple[Any, ...]], error: type[RanklogError] | None
) -> None:
    script.answers = list(answers)
    if error is None:
        assert store.put("k", b"x", if_absent=True) == '"e"'
    else:
        with pytest.raises(error):
            store.put("k", b"x", if_absent=True)
    assert script.answers == []
    assert {(method, seen["If-None-Match"]) for method, _, seen in script.seen} == {("PUT", "*")}


def test_a_body_that_breaks_off_is_read_again(store: S3Store, script: Script) -> None:
    script.answers = [(206, b"012", 10), (206, b"0123456", 10), (206, b"0123456789")]
    assert store.get_range("k", 5, 10, if_match='"e"') == b"0123456789"
    for method, path, headers in script.seen:
        assert (method, path.partition("?")[0]) == ("GET", "/b/p/k")
        assert (headers["Range"], headers["If-Match"]) == ("bytes=5-14", '"e"')


def test_a_body_that_always_breaks_off_is_unavailable(store: S3Store, script: Script) -> None:
    script.answers = [(200, b"012", 10)] * 3
    with pytest.raises(Unavailable):
        store.get("k")
    assert script.answers == []


def test_a_range_answered_short_or_long_is_corrupt(store: S3Store, script: Script) -> None:
    for body in (b"01", b"0123456789"):
        script.answers = [(206, body)]
        with pytest.raises(Corrupt):
            store.get_range("k", 0, 5)


def test_nobody_listening_is_unavailable_and_no_credentials_are_bad_input(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")
    with pytest.raises(BadInput, match="credentials"):
        S3Store("bucket").get("k")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    with pytest.raises(Unavailable):
        S3Store("bucket", client=aws_client("s3", attempts=1)).get("k")


def test_boto3_is_imported_with_the_first_client_only() -> None:
    code = (
        "import sys; sys.path[:0] = sys.argv[1:]\n"
        "import ranklog.store\n"
        "assert not {'boto3', 'botocore'} & set(sys.modules)\n"
        "sys.modules['boto3'] = None\n"
        "from ranklog.errors import BadInput\n"
        "try: ranklog.store.open_store('s3://bucket')\n"
        "except BadInput as error: print(error.hint)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, *sys.path], capture_output=True, text=True, check=True
    )
    assert run.stdout == "pip install 'ranklog[aws]'\n"
