"""`ranklog audit`: exit codes, what it prints, and the log of actions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ranklog.api.sinks import StoreFrames
from ranklog.cli.main import main
from ranklog.ingest.records import park
from ranklog.layout import keys
from ranklog.model.record import Record
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


def test_frames_that_are_in_no_chain_yet_are_counted_and_change_nothing(
    capsys: pytest.CaptureFixture[str], store: str
) -> None:
    before = main(["audit", "--store", store])
    assert "in no chain" not in capsys.readouterr().err
    opened, record = open_store(store), Record(b"junk", NOW_NS, "1")
    park(opened, "default", record, "s")
    park(opened, "default", Record(b"more", NOW_NS, "2"), "s")
    opened.put(keys.quarantine_key("default", keys.day_text(NOW_NS), "s", "3"), b"bad")
    assert main(["audit", "--store", store]) == before
    assert (
        "frames that are in no chain yet: 2 wait for the tenant's quota, 1 are in quarantine: "
        "ranklog quarantine list"
    ) in capsys.readouterr().err
    assert main(["audit", "--store", store, "--json"]) == before
    out, err = capsys.readouterr()
    report = json.loads(out.splitlines()[-1])["report"]
    assert (report["waiting_frames"], report["quarantined_frames"]) == (2, 1)
    assert "in no chain" in err


def test_the_log_names_a_deletion(capsys: pytest.CaptureFixture[str], store: str) -> None:
    assert main(["audit", "--log", "--store", store]) == 1
    words = ["delete", "rank:0", "--run", "job", "--store", store, "--yes"]
    assert main([*words, "--why", "request 93", "--who", "ada"]) == 0
    capsys.readouterr()
    assert main(["audit", "--log", "--store", store, "--json"]) == 0
    entry, _ = map(json.loads, capsys.readouterr().out.splitlines())
    assert (entry["action"], entry["who"], entry["why"]) == ("delete", "ada", "request 93")
