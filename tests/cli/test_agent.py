"""`ranklog agent`, `agent status` and `replay` as people use them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ranklog.agent import main as agent_main
from ranklog.agent import status
from ranklog.agent.collector import Collector
from ranklog.agent.sinks import Outcome
from ranklog.cli.main import main
from ranklog.errors import Unavailable
from ranklog.produce import spool
from ranklog.produce.identity import Identity
from ranklog.produce.spool import ProcessFiles
from tests.agent.reading import lines_in

IDENTITY = Identity("default", "demo", "l1", 0, "n0", 3, 3, 8)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANKLOG_DESTINATION", "RANKLOG_SPOOL", "RANKLOG_HOST_LOGS"):
        monkeypatch.delenv(name, raising=False)


def announce(folder: Path, name: str, data: bytes, *, pid: int = 2**22 - 1) -> None:
    spool.make_spool(folder)
    (folder / f"{name}.stdout").write_bytes(data)
    spool.announce(folder, ProcessFiles(IDENTITY, name, pid, "1", {"stdout": f"{name}.stdout"}))


def texts(path: Path) -> list[str]:
    return [line.text for line in lines_in(path) if line.channel == "stdout"]


def test_an_agent_by_hand_sends_what_is_there(tmp_path: Path) -> None:
    announce(tmp_path / "spool", "a", b"one\ntwo\n")
    words = ["--spool", str(tmp_path / "spool"), "--destination", str(tmp_path / "out"), "--once"]

    assert main(["agent", *words]) == 0
    assert texts(tmp_path / "out") == ["one", "two"]


def test_a_relative_destination_is_told_as_ranks_name_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    real = agent_main.open_sink
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        agent_main, "open_sink", lambda where, environ: opened.append(where) or real(where, environ)
    )

    assert main(["agent", "--spool", "spool", "--destination", "out", "--once"]) == 0
    assert opened == [str(tmp_path / "out")]


def test_an_agent_needs_a_destination(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["agent", "--spool", str(tmp_path)]) == 2
    assert "send where?" in capsys.readouterr().err
    assert main(["agent", "stop"]) == 2
    assert "no such action" in capsys.readouterr().err


def test_files_that_are_not_there_are_told_where_they_are_read_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--tail", f"{tmp_path}/none*.log", "--destination", str(tmp_path / "stream"), "--once"]

    assert main(["agent", "--spool", str(tmp_path / "spool"), *words]) == 2
    assert "none*.log" in capsys.readouterr().err


def test_status_tells_what_is_read_what_waits_and_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Hole:
        def put_all(self, frames: object) -> list[Outcome]:
            return [Outcome(Unavailable("nobody there"))]

    folder = tmp_path / "spool"
    words = ["agent", "status", "--spool", str(folder)]
    assert main(words) == 1
    assert "no agent has worked" in capsys.readouterr().out
    announce(folder, "a", b"password=hunter2\n", pid=os.getpid())
    collector = Collector(folder, Hole())
    collector.poll(hurry=True)
    status.write(folder, status.describe(collector, "https://logs", 0.0))

    with spool.collector_lock(folder):
        assert main(words) == 0
        shown = capsys.readouterr().out
        assert main([*words, "--json"]) == 0
    collector.close()
    for part in ("works, pid", "https://logs", "1 frames", "nobody there", "password 1", "stdout"):
        assert part in shown
    told = json.loads(capsys.readouterr().out)
    assert told["running"] is True
    assert told["processes"][0]["sources"]["stdout"] == {"offset": 17, "lag_bytes": 0}
    assert main([*words, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["running"] is False


def test_status_tells_why_no_agent_could_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANKLOG_MASK_RULES", str(tmp_path / "none.json"))
    folder = tmp_path / "spool"
    assert agent_main.main([str(folder), str(tmp_path / "out"), "--once"]) == 2
    words = ["agent", "status", "--spool", str(folder)]
    capsys.readouterr()

    assert main(words) == 1
    shown = capsys.readouterr().out
    assert "no agent has worked" in shown and "none.json" in shown
    assert main([*words, "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["running"], "none.json" in told["start_error"]) == (False, True)


def test_a_left_over_spool_is_replayed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    announce(tmp_path / "spool", "a", b"left\n")
    words = ["replay", str(tmp_path / "spool"), "--destination", str(tmp_path / "out"), "--json"]

    assert main(words) == 0
    report = json.loads(capsys.readouterr().out)["report"]
    assert (report["left"], report["refused"], report["error"]) == (0, 0, None)
    assert texts(tmp_path / "out") == ["left"]
    assert main(["replay", str(tmp_path / "none"), "--destination", str(tmp_path / "out")]) == 2
    assert "holds no spool" in capsys.readouterr().err


def test_an_agent_ingests_into_a_store_by_itself(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    announce(tmp_path / "spool", "a", b"straight into the store\n")
    store = tmp_path / "store"
    words = ["--spool", str(tmp_path / "spool"), "--destination", f"store:{store}", "--once"]

    assert main(["agent", *words]) == 0
    from ranklog.client import Client

    with Client(store=str(store)) as client:
        found = client.search("straight", run="demo")
        assert [line.text for line in found.lines] == ["straight into the store"]
