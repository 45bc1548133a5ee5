"""`ranklog slo` and `ranklog canary` over a store: what they print, set, and exit with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ranklog.cli.main import main
from ranklog.delete.actions import read_actions
from ranklog.ingest.local import ingest_stream
from ranklog.objectives.recorder import Recorder
from ranklog.store import DiskStore
from ranklog.stream.disk import DiskStream
from tests.api.job import frame_of

PERIOD = ["--since", "2026-01-01", "--until", "2100-01-01"]


@pytest.fixture
def store(tmp_path: Path) -> DiskStore:
    """A small job's lines, ingested from a stream, with what was measured."""
    made = DiskStore(tmp_path / "store", create=True)
    stream = DiskStream(tmp_path / "stream", sync=False)
    stream.put("key", frame_of())
    list(ingest_stream(stream, made, Recorder(made)))
    return made


def printed(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_objectives_are_an_object_each_and_the_rest_the_report(
    store: DiskStore, capsys: pytest.CaptureFixture[str]
) -> None:
    # lines of 2026-01-01 were not searchable within 30 s of their own time
    assert main(["slo", "--store", store.url, *PERIOD, "--json"]) == 1
    *rows, report = printed(capsys)
    by_name = {row["objective"]: row for row in rows}
    assert by_name["delay_p99_ms"]["met"] is False
    assert by_name["completeness"]["met"] is by_name["durability"]["met"] is True
    assert by_name["query_p99_ms"]["met"] is None
    assert report["report"]["stored"]["lines"] == 13
    assert main(["slo", "--store", store.url, *PERIOD, "--format", "json"]) == 1
    assert printed(capsys)[:-1] == rows


def test_an_objective_that_is_set_or_lifted_decides_and_is_in_the_log_of_actions(
    store: DiskStore, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["slo", "--store", store.url, *PERIOD]
    assert main([*words, "--set", "delay_p99_ms=none"]) == 0
    assert "delay_p99_ms" in capsys.readouterr().out
    assert main([*words, "--set", "completeness=1", "--set", "delay_p99_ms=default"]) == 1
    actions = [action.action for action in read_actions(store, "default")]
    assert actions == ["objectives.set", "objectives.set"]


@pytest.mark.parametrize("text", ["completeness", "completeness=2", "delay_p99_ms=soon", "x=1"])
def test_what_is_no_objective_is_refused_and_not_logged(
    store: DiskStore, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    assert main(["slo", "--store", store.url, "--set", text]) == 2
    assert capsys.readouterr().err
    assert list(read_actions(store, "default")) == []


def test_people_read_a_table_with_what_is_missed_and_left(
    store: DiskStore, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["slo", "--store", store.url, *PERIOD]) == 1
    out = capsys.readouterr().out
    assert "MISSED" in out and "budget left" in out and "13 lines of" in out


def test_nothing_measured_is_told_by_the_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = DiskStore(tmp_path / "empty", create=True)
    assert main(["slo", "--store", empty.url]) == 3
    assert "MISSED" not in capsys.readouterr().out


def test_a_canary_makes_its_way_through_a_store_and_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RANKLOG_DESTINATION", raising=False)
    store = str(tmp_path / "new")
    assert main(["canary", "--store", store, "--lines", "5", "--format", "json"]) == 0
    outcome, report = printed(capsys)
    assert (outcome["lines"], outcome["missing"], outcome["doubled"]) == (5, 0, 0)
    assert report == {"report": {"rounds": 1, "bad": 0}}
    assert main(["slo", "--store", store, "--since", "1h", "--json"]) == 0
    found = {row.get("objective"): row for row in printed(capsys)}
    assert (found["canary_found"]["of"], found["canary_found"]["bad"]) == (5, 0)


def test_a_canary_that_is_not_found_exits_with_1_and_says_where_it_was_looked_for(
    store: DiskStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # nobody ingests that stream
    away = str(tmp_path / "another-stream")
    words = ["canary", "--store", store.url, "--destination", away, "--timeout", "5"]
    assert main([*words, "--lines", "2"]) == 1
    out = capsys.readouterr().out
    assert "0 of 2 lines found" in out and "not found within" in out and "ranklog-canary@" in out


@pytest.mark.parametrize(
    "words", [["--once", "--every", "5"], ["--lines", "0"], ["--lines", "5000"]]
)
def test_words_that_fit_nothing_are_refused(
    store: DiskStore, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    assert main(["canary", "--store", store.url, *words]) == 2
    assert capsys.readouterr().err
