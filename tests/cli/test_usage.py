"""`ranklog usage`: what is stored, counted and allowed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ranklog.cli.main import main
from ranklog.ingest.batch import ingest_batch
from ranklog.model.record import Record
from ranklog.store.disk import DiskStore
from tests.api.job import NOW_NS, frame_of


@pytest.fixture
def where(tmp_path: Path) -> list[str]:
    store = DiskStore(str(tmp_path / "s"), create=True)
    for at, run in enumerate(("job", "other-job")):
        record = Record(frame_of("acme", run=run, number=at), NOW_NS, str(at))
        ingest_batch([record], store=store, source="s", first=str(at), last=str(at))
    return ["--store", str(tmp_path / "s"), "--tenant", "acme"]


def usage(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, object]]:
    assert main(["usage", *words, "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_runs_and_days_add_up_to_what_is_stored(
    where: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    *runs, last = usage(capsys, *where)
    assert [(run["run_id"], run["lines"], run["points"]) for run in runs] == [
        ("job@l1", 13, 0),
        ("other-job@l1", 13, 0),
    ]
    report = last["report"]
    assert isinstance(report, dict)
    files = [p for p in (tmp_path / "s" / "acme").rglob("*") if p.is_file()]
    assert report["stored_bytes"] == sum(p.stat().st_size for p in files)
    data = report["stored_bytes_by_kind"]["data"]
    assert sum(int(str(run["stored_bytes"])) for run in runs) == data
    assert set(report["stored_bytes_by_day"]) == {"2026-01-01"}


def test_what_was_delivered_twice_counts_once(
    where: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def told() -> list[dict[str, object]]:
        assert main(["streams", "--run", "job", *where, "--json"]) == 0
        shown = capsys.readouterr().out.splitlines()
        streams = [row for row in map(json.loads, shown) if "stream" in row]
        return [run | {"stored_bytes": 0} for run in usage(capsys, *where)[:-1]] + streams

    before = told()
    record = Record(frame_of("acme", run="job", number=0), NOW_NS, "7")
    store = DiskStore(str(tmp_path / "s"))
    ingest_batch([record], store=store, source="s", first="7", last="7")
    assert told() == before


def test_a_run_that_is_named_is_shown_alone(
    where: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [("acme", "job", 2), ("acme", "third", 3)]
    records = [Record(frame_of(t, run=run, number=n), NOW_NS, str(n)) for t, run, n in runs]
    store = DiskStore(str(tmp_path / "s"))
    ingest_batch(records, store=store, source="s", first="2", last="3")  # in one segment
    assert [run["run_id"] for run in usage(capsys, *where, "--run", "third")[:-1]] == ["third@l1"]


def test_a_quota_is_set_and_lifted(where: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    last = usage(
        capsys, *where, "--quota", "scan_bytes_per_hour=5", "--quota", "requests_at_once=2"
    )
    assert last[-1]["report"]["quotas"] == {"scan_bytes_per_hour": 5, "requests_at_once": 2}  # type: ignore[index]
    last = usage(capsys, *where, "--quota", "scan_bytes_per_hour=none")
    assert last[-1]["report"]["quotas"] == {"requests_at_once": 2}  # type: ignore[index]
    assert main(["usage", *where, "--quota", "x=1"]) == 2
    assert main(["usage", *where, "--quota", "scan_bytes_per_hour"]) == 2


def test_people_see_the_same(where: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["usage", *where]) == 0
    shown = capsys.readouterr().out
    assert "other-job@l1" in shown and "stored: " in shown and "through the API" in shown
