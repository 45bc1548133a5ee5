"""`ranklog compact` and `ranklog reindex`, from words to printed lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ranklog.access.meter import Meter
from ranklog.access.policy import Policy, Quotas, write_policy
from ranklog.cli.main import main
from ranklog.ingest.allowance import Allowance
from ranklog.ingest.batch import ingest_batch
from ranklog.ingest.waiting import list_waiting
from ranklog.model.record import Record
from ranklog.store.disk import DiskStore
from ranklog.stream.frames import encode_frame
from tests.ingest.frames import STREAM, T0, Row, make_frame

HOUR = "2026-03-01T00"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    store = DiskStore(tmp_path / "store", sync=False)
    for number in range(5):
        data = encode_frame(make_frame([Row(f"line {number}")], first_seq={STREAM: number}))
        name = str(number)
        ingest_batch([Record(data, T0, name)], store=store, source="k", first=name, last=name)
    return tmp_path / "store"


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def run(folder: Path, *words: str) -> int:
    return main([*words, "--store", str(folder), "--tenant", "acme"])


def test_a_dry_run_says_what_would_be_done(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = files(folder)
    assert run(folder, "compact", "--dry-run") == 0
    assert "5 indexes with their segments would be merged into 1" in capsys.readouterr().out
    assert files(folder) == before


def test_an_hour_is_merged_and_answers_as_before(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(folder, "compact", "--hour", "2026-03-01T05", "--json") == 0
    assert json.loads(capsys.readouterr().out)["report"]["merged"] == 0
    assert run(folder, "compact", "--hour", HOUR, "--json") == 0
    report = json.loads(capsys.readouterr().out)["report"]
    assert (report["merged"], report["merges"], report["rows"], report["failed"]) == (5, 1, 5, {})
    assert run(folder, "search", "line", "--json", "--run", "llama") == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["text"] for one in found if "text" in one] == [f"line {i}" for i in range(5)]


def test_what_waited_for_the_quota_is_stored_by_a_pass_that_may_write(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = DiskStore(folder, sync=False)
    write_policy(store, "acme", Policy(quotas=Quotas(ingest_bytes_per_hour=1)))
    data = encode_frame(make_frame([Row("line 5")], first_seq={STREAM: 5}))
    for name in "89":  # the first still has room
        allowance = Allowance(Meter(store, process=name, resume=True))
        record = Record(data, T0, name)
        ingest_batch([record], store=store, allowance=allowance, source="k", first=name, last=name)
        allowance.meter.flush()
    parked = len(list(list_waiting(store, "acme")))
    assert parked
    write_policy(store, "acme", Policy())

    assert run(folder, "compact", "--dry-run") == 0
    assert len(list(list_waiting(store, "acme"))) == parked
    assert run(folder, "compact") == 0
    assert f"stored {parked} frames that waited for the quota, 0 wait" in capsys.readouterr().err
    assert not list(list_waiting(store, "acme"))


def test_an_hour_that_is_none_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "compact", "--hour", "yesterday") == 2
    assert "not an hour: yesterday" in capsys.readouterr().err


def test_what_can_not_be_read_is_named_and_left(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [bad, *_] = sorted((folder / "acme/index").rglob("*.idx"))
    bad.write_bytes(b"RLIX")
    assert run(folder, "compact") == 0
    seen = capsys.readouterr()
    assert "4 indexes with their segments merged into 1" in seen.out
    assert "left as it is:" in seen.err and bad.name in seen.err


def test_indexes_come_back(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (folder / "acme/index").rglob("*.idx"):
        path.unlink()
    assert run(folder, "reindex", "--dry-run") == 0
    assert "5 segments; 5 indexes would be written" in capsys.readouterr().out
    assert run(folder, "reindex", "--json") == 0
    assert json.loads(capsys.readouterr().out)["report"]["written"] == 5
    assert run(folder, "reindex") == 0
    assert "0 indexes written" in capsys.readouterr().out
    assert run(folder, "search", "line", "--run", "llama") == 0
