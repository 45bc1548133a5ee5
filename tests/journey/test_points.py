"""From `ranklog.telemetry` in a job to points in an answer, with completeness; and on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ranklog.cli.main import main
from ranklog.client import Client
from ranklog.ingest.local import ingest_stream
from ranklog.store.open import open_store
from ranklog.stream.disk import DiskStream
from tests.produce.test_session import Job

PROGRAM = """
import ranklog
ranklog.init(run='llama', metadata={'config': 'c4'})
for step in range(20):
    ranklog.iteration(step)
    ranklog.telemetry({'loss': 2.5 - step / 8})
    ranklog.telemetry({'grad_norm': step / 4, 'lr': None}, layer='h.3')
ranklog.telemetry({'loss': float('nan')})
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What two ranks recorded, collected and ingested."""
    folder = tmp_path_factory.mktemp("points")
    job = Job(folder)
    for rank in ("0", "1"):
        assert job.run(PROGRAM, RANK=rank, WORLD_SIZE="2", RANKLOG_RUN_ID="7").returncode == 0
    job.collect()
    url = str(folder / "store")
    reports = list(ingest_stream(DiskStream(folder / "stream"), open_store(url, create=True)))
    assert sum(report.points for report in reports) == 2 * (20 + 40 + 1)
    assert not any(report.bad for report in reports)
    return url


def test_what_a_job_recorded_is_complete_and_as_it_was(store: str) -> None:
    with Client(store=store) as client:
        answer = client.search("kind:point series:loss", run="llama", limit=None)
        lines = client.search("channel:telemetry", run="llama")
        [run] = client.runs().rows
    points = answer.to_json()["points"]
    for rank in (0, 1):
        own = [point for point in points if point["rank"] == rank]
        assert [point["value"] for point in own] == [*(2.5 - n / 8 for n in range(20)), "NaN"]
        assert [point["iteration"] for point in own] == [*range(20), 19]
        assert {point["metadata"]["config"] for point in own} == {"c4"}
    assert answer.completeness.state == "complete"
    assert lines.lines == [] and lines.completeness.state == "complete"
    assert run["points"] == 122


def test_the_command_prints_points_counts_and_objects(
    store: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RANKLOG_STORE", raising=False)
    where = ["--store", store, "--run", "llama"]
    assert main(["search", "kind:point grad_norm>=4.75 rank:1", *where]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[-1].split()[-5:] == ["1", "19", "grad_norm", "layer=h.3", "4.75"]
    assert main(["search", "kind:point layer:h.3", "--by", "series", "--json", *where]) == 0
    counts = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert counts[:2] == [{"series": "grad_norm", "count": 40}, {"series": "lr", "count": 40}]
    assert main(["search", "kind:point series:none", *where]) == 1
    assert main(["search", "kind:point lr:null series:lr", "--json", *where]) == 0
    shown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(shown) == 41 and {point["value"] for point in shown[:-1]} == {None}
    assert shown[-1]["completeness"]["state"] == "complete"


def test_an_export_of_the_command_holds_every_point(store: str, tmp_path: Path) -> None:
    where = ["--store", store, "--run", "llama", "--out", str(tmp_path / "out")]
    assert main(["export", "kind:point", "--format", "jsonl", *where]) == 0
    assert len((tmp_path / "out" / "points.jsonl").read_text().splitlines()) == 122
