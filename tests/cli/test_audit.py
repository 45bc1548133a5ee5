"""`ranklog audit`: exit codes, what it prints, and the log of actions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ranklog.api.sinks import StoreFrames
from ranklog.cli.main import main
from ranklog.store.open import open_store
from tests.api.job import NOW_NS, frame_of


@pytest.fixture
def store(tmp_path: Path) -> str:
    url = str(tmp_path / "store")
    StoreFrames(open_store(url, create=True), lambda: NOW_NS).accept("default", frame_of())
    return url


def test_exit_codes_tell_verified_altered_and_nothing(
    capsys: pytest.CaptureFixture[str], store: str, tmp_path: Path
) -> None:
    code = main(["audit", "--store", store, "--json", "--all"])
    *frames, last = map(json.loads, capsys.readouterr().out.splitlines())
    missing = [one["number"] for one in frames if one["state"] == "missing"]
    assert (code, last["report"]["altered"]) == (3 if missing else 0, 0)
    [segment] = Path(store).rglob("*.parquet")
    segment.write_bytes(segment.read_bytes()[:-1] + b"x")
    assert main(["audit", "--store", store]) == 4
    out, err = capsys.readouterr()
    assert "altered" in out
    assert "1 of them not what was committed" in err
    for index in Path(store).rglob("*.idx"):
        index.unlink()
    segment.write_bytes(segment.read_bytes()[:-1] + b"1")
    assert main(["audit", "--store", store]) == 3
    out, err = capsys.readouterr()
    assert out.startswith("missing: default/data/")
    assert "1 segments have no index" in err and "ranklog reindex" in err
    assert "0 segments, 0 of them not what was committed" in err
    empty = tmp_path / "empty"
    open_store(str(empty), create=True)
    assert main(["audit", "--store", str(empty)]) == 1


def test_the_log_names_a_deletion(capsys: pytest.CaptureFixture[str], store: str) -> None:
    assert main(["audit", "--log", "--store", store]) == 1
    words = ["delete", "rank:0", "--run", "job", "--store", store, "--yes"]
    assert main([*words, "--why", "request 93", "--who", "ada"]) == 0
    capsys.readouterr()
    assert main(["audit", "--log", "--store", store, "--json"]) == 0
    entry, _ = map(json.loads, capsys.readouterr().out.splitlines())
    assert (entry["action"], entry["who"], entry["why"]) == ("delete", "ada", "request 93")
