"""`ranklog serve` with roles: frames go through the stream on disk into the store, whoever is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from ranklog import limits
from ranklog.client import Client
from ranklog.errors import BadInput, NotFound
from ranklog.server.roles import default_stream, parse_roles
from ranklog.stream.frames import encode_frame
from tests.ingest.frames import T0, Row, make_frame, stream

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="roles are forked")


def frame(number: int) -> bytes:
    rows = [Row(f"line {number}", ts=T0 + number * limits.SECOND_NS, stream=stream(0))]
    return encode_frame(make_frame(rows, first_seq={stream(0): number}, number=number))


@contextmanager
def serve(*words: str) -> Iterator[subprocess.Popen[str]]:
    command = [
        sys.executable,
        "-m",
        "ranklog.cli.main",
        "serve",
        "--json",
        "--tenant",
        "acme",
        *words,
    ]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    words = ["--roles", "api,ingest,compact", "--store", str(tmp_path / "store")]
    words += ["--stream", str(tmp_path / "frames"), "--listen", "127.0.0.1:0", "--workers", "1"]
    with serve(*words, "--window", "0.2") as process:
        assert process.stdout is not None
        yield process, json.loads(process.stdout.readline())


def post(url: str, data: bytes) -> None:
    with urllib.request.urlopen(f"{url}/v1/frames", data=data, timeout=20) as answer:
        assert answer.status in (200, 202)


def until_found(client: Client, count: int) -> list[str]:
    """The lines, once there are so many; until the first arrives the run is not there at all."""
    deadline = time.monotonic() + 60
    found: list[str] = []
    while len(found) < count:
        assert time.monotonic() < deadline, found
        time.sleep(0.1)
        with suppress(NotFound):
            answer = client.search("", run="llama", limit=None, order="oldest")
            found = [line.text for line in answer.lines]
    return found


def test_frames_become_lines_though_every_process_is_killed(
    server: tuple[subprocess.Popen[str], dict[str, str]],
) -> None:
    process, said = server
    for number in range(3):
        post(said["url"], frame(number))
    assert until_found(Client(api=said["url"]), 3) == ["line 0", "line 1", "line 2"]
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert len(children) == 3
    for pid in children:
        os.kill(int(pid), signal.SIGKILL)
    post(said["url"], frame(3))  # the socket is the parent's: it waits for the next worker
    assert until_found(Client(api=said["url"]), 4)[-1] == "line 3"
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0


def test_a_server_without_the_api_ingests_what_others_put(tmp_path: Path) -> None:
    from ranklog.stream.disk import DiskStream

    DiskStream(tmp_path / "frames").put("k", frame(0))
    words = ["--roles", "ingest", "--store", str(tmp_path / "store")]
    with serve(*words, "--stream", str(tmp_path / "frames"), "--window", "0.1") as process:
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        assert "url" not in said and said["roles"] == ["ingest"]
        assert until_found(Client(store=str(tmp_path / "store"), tenant="acme"), 1) == ["line 0"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--roles", "api,banana"], "no role 'banana'"),
        (["--roles", "compact", "--stream", "x"], "--stream goes with"),
        (["--window", "301"], "--window 301"),
        (["--compact-every", "1"], "--compact-every 1"),
        (["--listen", "0.0.0.0:0", "--roles", "api,ingest"], "needs keys and TLS"),
    ],
)
def test_what_makes_no_sense_is_refused(words: list[str], said: str, tmp_path: Path) -> None:
    with serve("--store", str(tmp_path / "s"), *words) as process:
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 2 and said in errors


def test_roles_are_named_with_commas() -> None:
    assert parse_roles(" api, compact ") == {"api", "compact"}
    with pytest.raises(BadInput):
        parse_roles("")


def test_each_store_has_a_stream_of_its_own() -> None:
    data = Path("/data/ranklog")
    assert default_stream(data, "s3://a") != default_stream(data, "s3://b")
    assert default_stream(data, "s3://a").parent == data.parent
