"""The way out, against real servers on this machine."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ranklog.doctor.check import NOTE, OK, PROBLEM, Check
from ranklog.doctor.way import check_agent, check_clock, check_destination, check_host_logs
from ranklog.produce import spool
from ranklog.store.disk import DiskStore

KEY = "right"


class Api(BaseHTTPRequestHandler):
    """Answers health to all, runs to those with the key, and with a clock of its own."""

    skew_s = 0.0

    def do_GET(self) -> None:
        allowed = self.headers.get("Authorization") == f"Bearer {KEY}"
        found = self.path.startswith("/v1/")
        status = 404 if not found else 200 if allowed or self.path == "/v1/health" else 401
        self.send_response_only(status)
        self.send_header("Date", formatdate(time.time() + self.skew_s, usegmt=True))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *words: object) -> None:
        """Says nothing."""


@pytest.fixture
def api() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def states(checks: list[Check]) -> dict[str, str]:
    return {check.name: check.state for check in checks}


def test_an_api_that_answers_and_takes_the_key_is_fine(api: str) -> None:
    found = check_destination({"RANKLOG_API_KEY": KEY}, api)

    assert states(found) == {"destination": OK, "key": OK}


@pytest.mark.parametrize(("key", "says"), [("", "none is set"), ("wrong", "refuses the key")])
def test_a_wrong_key_is_a_problem(api: str, key: str, says: str) -> None:
    found = check_destination({"RANKLOG_API_KEY": key, "RANKLOG_DESTINATION": api})

    assert states(found) == {"destination": OK, "key": PROBLEM}
    assert says in found[1].says


def test_another_server_is_not_the_api(api: str) -> None:
    assert states(check_destination({}, f"{api}/else")) == {"destination": PROBLEM}


def test_a_clock_that_differs_from_the_apis_is_a_problem(
    api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Api, "skew_s", 60.0)
    found = check_destination({"RANKLOG_API_KEY": KEY}, api)

    assert states(found)["clock"] == PROBLEM
    assert "behind the API's" in found[-1].says


def test_an_api_that_is_not_there_is_a_problem() -> None:
    [check] = check_destination({}, "http://127.0.0.1:9")

    assert check.state == PROBLEM
    assert "does not answer" in check.says


def test_a_folder_is_fine_where_it_can_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    assert states(check_destination({}, str(tmp_path / "new" / "stream"))) == {"destination": OK}
    assert states(check_destination({}, f"file://{tmp_path}/new")) == {"destination": OK}
    assert states(check_destination({}, str(tmp_path / "file" / "x"))) == {"destination": PROBLEM}
    assert not (tmp_path / "new").exists()


def test_a_store_answers_or_will_be_made(tmp_path: Path) -> None:
    DiskStore(str(tmp_path / "store"), create=True)

    assert "answers" in check_destination({}, f"store:{tmp_path}/store")[0].says
    assert check_destination({}, f"store:{tmp_path}/new")[0].state == OK
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("destination", ["ftp://host/x", "gopher:x"])
def test_a_destination_of_no_known_kind_is_a_problem(destination: str) -> None:
    assert states(check_destination({}, destination)) == {"destination": PROBLEM}


def test_without_a_destination_lines_stay_and_that_is_said() -> None:
    [check] = check_destination({})

    assert check.state == NOTE
    assert "RANKLOG_DESTINATION" in check.do


def test_a_spool_that_nobody_sends_is_noted(tmp_path: Path) -> None:
    assert check_agent(tmp_path / "none").state == OK
    (tmp_path / "ab.process").write_text("{}")
    assert "ranklog replay" in check_agent(tmp_path).do
    with spool.collector_lock(tmp_path) as ours:
        assert ours
        assert "an agent works" in check_agent(tmp_path).says


def test_host_logs_are_listed_with_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "kmsg").touch()
    first, *others = check_host_logs({}, tmp_path)

    assert first.says == "kernel can be followed"
    assert [check.name for check in others] == [
        f"host logs: {name}" for name in ("nccl", "slurm", "kubelet")
    ]


def test_the_clock_is_asked() -> None:
    assert check_clock().state in (OK, NOTE)
