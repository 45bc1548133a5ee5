"""The command: what it prints, runs and calls; what goes wrong with these does not end it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from ranklog.cli.main import main
from ranklog.cli.watch_send import WAITS_S, call_webhook, check_webhook, run_command
from ranklog.errors import BadInput
from ranklog.importer import import_paths
from ranklog.store.open import open_store

ALERT: dict[str, Any] = {
    "kind": "alert",
    "state": "fired",
    "alert": "stalled",
    "verdict": None,
    "severity": "critical",
    "run": "job@l",
    "subjects": ["run"],
    "ranks": [3, 4],
    "message": "no new iteration for 5 min",
    "query": "iteration>=7",
    "command": "ranklog search 'iteration>=7' --run job@l",
    "runbook": "docs/runbooks/hang.md",
}


@contextmanager
def webhook(*codes: int) -> Iterator[tuple[str, list[Any]]]:
    """A server that answers these codes, then 200; what it was sent."""
    sent: list[Any] = []
    left = list(codes)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(left.pop(0) if left else 200)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *words: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/hook", sent
        finally:
            server.shutdown()
            thread.join()


def test_a_command_is_given_the_alert_as_json_and_in_its_environment(tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = (
        f'cat > {out}; printf "%s %s" "$RANKLOG_ALERT_MESSAGE" "$RANKLOG_ALERT_RANKS" >> {out}'
    )
    assert run_command(command, ALERT) is None
    said, _, words = out.read_text().rpartition("}")
    assert json.loads(said + "}") == ALERT
    assert words == "no new iteration for 5 min 3,4"


def test_a_command_that_fails_is_said() -> None:
    assert run_command("echo no mail >&2; exit 3", ALERT) == "--exec ended with code 3: no mail"


def test_a_command_that_does_not_end_is_ended_with_what_it_started(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    started = time.monotonic()
    said = run_command(f"(sleep 3; touch {mark}) & sleep 30", ALERT, timeout_s=0.3)
    assert said == "--exec took longer than 0.3 s and was ended"
    assert time.monotonic() - started < 20
    time.sleep(3.2)
    assert not mark.exists()


def test_a_webhook_is_sent_the_alert() -> None:
    with webhook() as (url, sent):
        assert call_webhook(url, ALERT, sleep=pytest.fail) is None
    assert sent == [ALERT]


def test_a_busy_webhook_is_asked_again_with_longer_waits() -> None:
    waited: list[float] = []
    with webhook(503, 429) as (url, sent):
        assert call_webhook(url, ALERT, sleep=waited.append) is None
    assert (len(sent), waited) == (3, list(WAITS_S[:2]))


def test_a_webhook_that_stays_busy_is_given_up() -> None:
    waited: list[float] = []
    with webhook(*[500] * 9) as (url, sent):
        assert (
            call_webhook(url, ALERT, sleep=waited.append) == "--webhook 127.0.0.1: it answered 500"
        )
    assert (len(sent), waited) == (4, list(WAITS_S))


@pytest.mark.parametrize("code", [302, 404])
def test_a_webhook_that_refuses_or_moved_is_not_asked_again(code: int) -> None:
    with webhook(code) as (url, sent):
        said = call_webhook(url, ALERT, sleep=pytest.fail)
    assert said == f"--webhook 127.0.0.1: it answered {code}"
    assert len(sent) == 1


def test_a_webhook_that_is_not_there_is_said() -> None:
    with webhook() as (url, _):
        pass
    said = call_webhook(url, ALERT, sleep=lambda seconds: None)
    assert said is not None
    assert "refused" in said.lower()


@pytest.mark.parametrize("url", ["ftp://x/y", "hooks.example.com", "http://"])
def test_what_is_no_address_is_refused_before_it_begins(url: str) -> None:
    with pytest.raises(BadInput, match="no address"):
        check_webhook(url)


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A run that was imported: its streams have ended, its loss is NaN."""
    logs = tmp_path / "rank-0.log"
    words = "2026-05-01 10:00:{0:02d},000 INFO train train.py:41 iteration {0} loss {1}\n"
    text = "".join(words.format(k, "nan" if k > 8 else "2.5") for k in range(12))
    logs.write_text(text)
    opened = open_store(str(tmp_path / "store"), create=True)
    import_paths([str(logs)], store=opened, tenant="default", run="job", now_ns=time.time_ns())
    return str(tmp_path / "store")


def test_a_run_that_has_ended_ends_the_watch(
    store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["watch", "--store", store, "--run", "job", "--exit-code"]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "job@import ended" in said.err


def test_the_last_object_tells_the_state(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", "--store", store, "--run", "job", "--json", "--once"]) == 0
    rows = [json.loads(row) for row in capsys.readouterr().out.splitlines()]
    assert rows == [{"report": {"run": "job@import", "state": "unknown", "firing": 0}}]


def test_a_run_has_to_be_named(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", "--store", store]) == 2
    assert "which run" in capsys.readouterr().err


LIVE = """
import logging, sys, time
import ranklog
ranklog.init()
log = logging.getLogger("train")
for k in range(int(sys.argv[1])):
    with ranklog.iteration(k):
        log.info("step", extra={"loss": 2.5 if k < 6 else float("nan")})
    time.sleep(0.15)
"""


def test_a_live_run_is_watched_to_its_end(tmp_path: Path) -> None:
    """A real job by `ranklog run`: its loss turns NaN while it is watched, and it ends well."""
    script = tmp_path / "train.py"
    script.write_text(LIVE)
    store = str(tmp_path / "store")
    words = [sys.executable, "-m", "ranklog.cli.main", "run", "--run", "live", "--nproc", "2"]
    words += ["--store", store, "--spool", str(tmp_path / "spool"), "--"]
    alerts = tmp_path / "alerts"
    with subprocess.Popen([*words, sys.executable, str(script), "60"]) as running:
        try:
            _wait_for_run(store)
            watch = [sys.executable, "-m", "ranklog.cli.main", "watch", "--run", "live", "--json"]
            watch += ["--store", store, "--every", "0.5"]
            watch += ["--exec", f"cat >> {alerts}; echo >> {alerts}"]
            said = subprocess.run(watch, capture_output=True, text=True, timeout=90, check=True)
        finally:
            running.wait(timeout=120)
    rows = [json.loads(row) for row in said.stdout.splitlines()]
    assert rows[-1]["report"]["state"] == "finished"
    fired = [(row["alert"], row["subjects"]) for row in rows[:-1] if row["state"] == "fired"]
    assert fired == [("nan", ["loss"])]
    assert json.loads(alerts.read_text().splitlines()[0])["alert"] == "nan"


def _wait_for_run(store: str) -> None:
    from ranklog.client import Client
    from ranklog.errors import RanklogError

    for _ in range(600):
        try:
            with Client(store=store) as client:
                if client.runs(run="live").rows:
                    return
        except RanklogError:
            pass
        time.sleep(0.1)
    pytest.fail("the run never became visible")
