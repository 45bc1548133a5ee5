"""`ranklog retention`: rules are set, shown and cleared; apply lets go of what is older."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from ranklog.api.sinks import StoreFrames
from ranklog.cli.main import main
from ranklog.store.open import open_store
from ranklog.stream.disk import DiskStream
from ranklog.stream.frames import encode_frame
from tests.api.job import NOW_NS, frame_of
from tests.ingest.frames import Row, make_frame


@pytest.fixture
def store(tmp_path: Path) -> str:
    url = str(tmp_path / "store")
    StoreFrames(open_store(url, create=True), lambda: NOW_NS).accept("default", frame_of())
    return url


def test_a_rule_is_set_shown_applied_and_cleared(
    capsys: pytest.CaptureFixture[str], store: str
) -> None:
    at = ("--store", store)
    assert main(["retention", "show", *at]) == 1
    assert main(["retention", "set", "1d", "--run", "j*", "--who", "ada", *at]) == 0
    assert "j*   1d" in capsys.readouterr().out
    assert main(["retention", "apply", "--dry-run", *at]) == 0
    assert "would hide" in capsys.readouterr().out
    assert main(["search", "--run", "job", *at]) == 0
    assert main(["retention", "apply", *at]) == 0
    capsys.readouterr()
    assert main(["search", "--run", "job", *at]) in (1, 3)
    assert "removed by retention" in capsys.readouterr().err
    assert main(["retention", "clear", "--run", "j*", *at]) == 1
    capsys.readouterr()
    assert main(["audit", "--log", "--json", *at]) == 0
    *entries, _ = map(json.loads, capsys.readouterr().out.splitlines())
    assert [one["action"] for one in entries] == [
        "retention.set",
        "retention.apply",
        "retention.clear",
    ]


@pytest.mark.parametrize("action", [["set", "1d"], ["clear"]])
@pytest.mark.parametrize("run", ["", " "])
def test_a_run_that_is_given_as_nothing_is_not_every_run(
    capsys: pytest.CaptureFixture[str], store: str, action: list[str], run: str
) -> None:
    assert main(["retention", "set", "90d", "--store", store]) == 0
    capsys.readouterr()
    assert main(["retention", *action, "--run", run, "--store", store]) == 2
    assert "--run names nothing" in capsys.readouterr().err
    assert main(["retention", "show", "--store", store]) == 0
    assert "*    90d" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["set"], ["set", "soon"], ["set", "1h"], ["apply", "1d"], ["x"]])
def test_what_is_no_rule_is_refused(words: list[str], store: str) -> None:
    assert main(["retention", *words, "--store", store]) == 2


def test_an_import_does_not_call_stored_what_is_too_old(
    capsys: pytest.CaptureFixture[str], store: str, tmp_path: Path
) -> None:
    old, new = tmp_path / "old.log", tmp_path / "new.log"
    old.write_text("".join(f"2001-01-01 00:00:0{k},000 INFO step {k}\n" for k in range(5)))
    now = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
    new.write_text(f"{now},000 INFO step 9\n")
    assert main(["retention", "set", "1d", "--who", "ada", "--store", store]) == 0
    capsys.readouterr()
    words = ["import", str(old), str(new), "--run", "r", "--store", store]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "r@import: 1 lines stored, 5 refused: older than is kept (" in said
    assert main([*words, "--json", "--launch", "2"]) == 0
    *files, last = map(json.loads, capsys.readouterr().out.splitlines())
    assert [(file["lines"], file["stored"], file["refused"]) for file in files] == [
        (5, 0, 5),
        (1, 1, 0),
    ]
    assert (last["report"]["stored"], last["report"]["refused"]) == (1, 5)


def test_ingest_says_what_it_refused_and_what_came_twice(
    capsys: pytest.CaptureFixture[str], store: str, tmp_path: Path
) -> None:
    stream = DiskStream(tmp_path / "stream")
    day_ns = 86_400 * 10**9
    rows = [Row(f"l{k}", ts=time.time_ns() - k * 3 * day_ns) for k in range(3)]
    frame = make_frame(rows)
    stream.put("k", encode_frame(frame))
    tenant = frame.tenant
    at = ("--store", store, "--tenant", tenant)
    assert main(["retention", "set", "1d", "--who", "ada", *at]) == 0
    capsys.readouterr()
    assert main(["ingest", str(tmp_path / "stream"), "--store", store]) == 0
    assert capsys.readouterr().out.startswith("1 line ingested, 2 refused: older than is kept (")
    [kept] = (tmp_path / "stream").glob("consumers/*")
    kept.unlink()
    assert main(["ingest", str(tmp_path / "stream"), "--store", store]) == 0
    again = capsys.readouterr().out
    assert again.startswith("0 lines ingested, 1 known from an earlier attempt, 2 refused")


def test_what_is_kept_for_good_and_what_is_not_is_told_as_it_is(
    capsys: pytest.CaptureFixture[str], store: str
) -> None:
    def told(*words: str) -> str:
        main(["retention", *words, "--store", store])
        return capsys.readouterr().err

    canaries = "ranklog's canaries (run ranklog-canary) for 1d"
    assert f"every run is kept for good, but {canaries}" in told("show")
    assert f"every other run is kept for good, but {canaries}" in told("set", "9d", "--run", "j*")
    assert f"{canaries}, unless a rule has that name" in told("set", "90d")
    last = told("set", "7d", "--run", "ranklog-canary")
    assert "canaries" not in last and "for good" not in last
