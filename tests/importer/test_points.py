"""Event files and MLflow's stores: what their own writers wrote is what `series` reads."""

from __future__ import annotations

import math
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ranklog.client import Client
from ranklog.importer.importing import import_paths
from ranklog.importer.report import ImportReport
from ranklog.store.memory import MemoryStore

NOW_NS = 1_772_323_200_000_000_000
S = 10**9


class Imported:
    def __init__(self) -> None:
        self.store = MemoryStore()

    def run(self, *paths: Path) -> ImportReport:
        return import_paths(
            [str(path) for path in paths],
            store=self.store,
            tenant="acme",
            run="r",
            now_ns=NOW_NS,
        )

    def points(self, query: str = "*") -> list[tuple[Any, ...]]:
        """(series, dims, rank, iteration, value) of all points."""
        with Client(store=self.store, tenant="acme") as client:
            answer = client.series(query, run="r", max_points=None)
            assert answer.completeness.state == "complete"
            return [
                (row["series"], row["dims"], row["rank"], row["iteration"], row["value"])
                for row in answer.rows()
            ]


@pytest.fixture
def imported() -> Imported:
    return Imported()


def _writer(folder: Path, **words: Any) -> Any:
    writers = pytest.importorskip("tensorboardX")
    return writers.SummaryWriter(str(folder), **words)


def _records(data: bytes) -> list[int]:
    """Where each record begins."""
    at, found = 0, []
    while at < len(data):
        found.append(at)
        at += 16 + int.from_bytes(data[at : at + 8], "little")
    return found


def test_scalars_of_an_event_file_are_points_with_their_times(
    tmp_path: Path, imported: Imported
) -> None:
    with _writer(tmp_path / "logs") as writer:
        for step in range(3):
            writer.add_scalar("train/loss", 2.5 - step, step, walltime=1_700_000_000.5 + step)
        writer.add_scalar("acc", math.nan, 2, walltime=1_700_000_003.0)
    report = imported.run(tmp_path / "logs")

    (file,) = report.files
    assert (file.error, file.stored, file.known) == (None, 4, 0)
    assert imported.points("loss") == [("loss", {}, None, step, 2.5 - step) for step in range(3)]
    assert imported.points("accuracy") == [("accuracy", {}, None, 2, "NaN")]
    with Client(store=imported.store, tenant="acme") as client:
        (series,) = client.series("loss", run="r")
    assert series.ts_ns.tolist()[0] == 1_700_000_000_500_000_000
    assert series.written == ("train/loss",)


def test_the_same_event_file_again_stores_nothing_and_a_grown_one_its_tail(
    tmp_path: Path, imported: Imported
) -> None:
    with _writer(tmp_path / "logs") as writer:
        writer.add_scalar("loss", 2.0, 0)
        writer.add_scalar("loss", 1.0, 1)
    (path,) = (tmp_path / "logs").iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[: _records(whole)[-1]])
    assert imported.run(tmp_path).stored == 1
    assert imported.run(tmp_path).stored == 0
    path.write_bytes(whole)

    assert imported.run(tmp_path).stored == 1
    assert [value for *_, value in imported.points()] == [2.0, 1.0]


def test_an_event_file_that_ends_inside_a_record_is_read_as_far_as_it_is_whole(
    tmp_path: Path, imported: Imported
) -> None:
    with _writer(tmp_path / "logs") as writer:
        for step in range(5):
            writer.add_scalar("loss", float(step), step)
    (path,) = (tmp_path / "logs").iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[:-7])
    assert imported.run(path).stored == 4
    path.write_bytes(whole)

    assert imported.run(path).stored == 1
    assert [value for *_, value in imported.points()] == [0, 1, 2, 3, 4]


def test_a_damaged_event_file_says_where_and_keeps_what_came_before(
    tmp_path: Path, imported: Imported
) -> None:
    with _writer(tmp_path / "logs") as writer:
        for step in range(5):
            writer.add_scalar("loss", float(step), step)
    (path,) = (tmp_path / "logs").iterdir()
    path.write_bytes(path.read_bytes() + b"\xff" * 40)
    report = imported.run(path)

    assert "damaged at byte" in str(report.files[0].error)
    assert [value for *_, value in imported.points()] == [0, 1, 2, 3, 4]
    (tmp_path / "logs" / "good").write_text("2026-03-01 00:00:00 a line\n")
    assert imported.run(tmp_path / "logs").lines >= 1


def test_data_that_is_no_event_is_named_and_what_came_before_is_kept(
    tmp_path: Path, imported: Imported
) -> None:
    with _writer(tmp_path / "logs") as writer:
        for step in range(5):
            writer.add_scalar("loss", float(step), step)
    (path,) = (tmp_path / "logs").iterdir()
    data = bytearray(path.read_bytes())
    at = _records(bytes(data))[4]  # after the version, and steps 0 to 2
    data[at + 12 : at + 20] = b"\xff" * 8
    path.write_bytes(bytes(data))

    report = imported.run(path)
    assert "no event at byte" in str(report.files[0].error)
    assert [value for *_, value in imported.points()] == [0, 1, 2]


def test_histograms_of_both_writers_are_summaries(tmp_path: Path, imported: Imported) -> None:
    torch = pytest.importorskip("torch")
    from torch.utils.tensorboard import SummaryWriter

    values = torch.arange(100.0)
    with SummaryWriter(str(tmp_path / "logs")) as writer:
        writer.add_histogram("weights", values, 3)
        writer.add_text("note", "left out", 3)
        writer.add_scalar("new", 1.5, 3, new_style=True)
        writer.add_scalar("double", 0.1, 3, new_style=True, double_precision=True)
    imported.run(tmp_path)

    with Client(store=imported.store, tenant="acme") as client:
        rows = {row["series"]: row for row in client.series("*", run="r").rows()}
    assert set(rows) == {"weights", "new", "double"}
    summary = rows["weights"]["summary"]
    assert (summary["count"], summary["min"], summary["max"]) == (100, 0, 99)
    assert summary["mean"] == pytest.approx(49.5)
    assert sum(summary["histogram"]["counts"]) == 100
    assert (rows["new"]["value"], rows["double"]["value"]) == (1.5, 0.1)


def test_folders_are_a_dimension_and_ranks_are_ranks(tmp_path: Path, imported: Imported) -> None:
    for folder in ("train", "eval", "rank_3"):
        with _writer(tmp_path / folder) as writer:
            writer.add_scalar("loss", 1.0, 0)
    imported.run(tmp_path)

    assert sorted(imported.points(), key=str) == [
        ("loss", {"folder": "eval"}, None, 0, 1.0),
        ("loss", {"folder": "train"}, None, 0, 1.0),
        ("loss", {}, 3, 0, 1.0),
    ]


def test_an_mlflow_folder_is_points_by_run(tmp_path: Path, imported: Imported) -> None:
    run = tmp_path / "mlruns" / "1" / ("0a" * 16)
    (run / "metrics" / "val").mkdir(parents=True)
    (run / "tags").mkdir()
    (run / "meta.yaml").write_text("run_id: x\n")
    (run / "tags" / "mlflow.runName").write_text("brave-cat")
    (run / "metrics" / "loss").write_text("1700000000000 2.5 0\n1700000001000 nan 1\n")
    (run / "metrics" / "val" / "acc").write_text("1700000000000 0.5 7")
    imported.run(tmp_path / "mlruns" / "1" / ("0a" * 16) / "metrics")

    dims = {"mlflow_run": "brave-cat"}
    assert imported.points() == [
        ("loss", dims, None, 0, 2.5),
        ("loss", dims, None, 1, "NaN"),
        ("val/acc", dims, None, 7, 0.5),
    ]


def _database(path: Path, runs: list[tuple[str, str]], rows: list[tuple[Any, ...]]) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript(
            "CREATE TABLE IF NOT EXISTS experiments (experiment_id INTEGER, name VARCHAR(256));"
            "CREATE TABLE IF NOT EXISTS runs (run_uuid VARCHAR(32) PRIMARY KEY, name VARCHAR(250));"
            "CREATE TABLE IF NOT EXISTS metrics (key VARCHAR(250), value FLOAT, timestamp BIGINT,"
            " run_uuid VARCHAR(32), step BIGINT, is_nan BOOLEAN, PRIMARY KEY (key, timestamp, step,"
            " run_uuid, value, is_nan));"
        )
        database.executemany("INSERT INTO runs VALUES (?, ?)", runs)
        database.executemany("INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?)", rows)


def test_an_mlflow_database_is_points_by_run_and_grows(tmp_path: Path, imported: Imported) -> None:
    path = tmp_path / "mlflow.db"
    _database(
        path,
        [("a1", "first"), ("b2", "")],
        [
            ("loss", 2.5, 1_700_000_000_000, "a1", 0, 0),
            ("loss", 0.0, 1_700_000_001_000, "b2", 0, 1),
        ],
    )
    assert imported.run(path).stored == 2
    _database(path, [], [("loss", 2.25, 1_700_000_002_000, "a1", 1, 0)])

    assert imported.run(path).stored == 1
    assert imported.points() == [
        ("loss", {"mlflow_run": "b2"}, None, 0, "NaN"),
        ("loss", {"mlflow_run": "first"}, None, 0, 2.5),
        ("loss", {"mlflow_run": "first"}, None, 1, 2.25),
    ]


def test_another_database_is_no_log(tmp_path: Path, imported: Imported) -> None:
    with closing(sqlite3.connect(tmp_path / "x.db")) as database, database:
        database.execute("CREATE TABLE t (a)")
    report = imported.run(tmp_path / "x.db")

    assert "a SQLite database, not a log" in str(report.files[0].error)


def test_a_metric_file_with_something_else_in_it_is_named(
    tmp_path: Path, imported: Imported
) -> None:
    run = tmp_path / ("0b" * 16)
    (run / "metrics").mkdir(parents=True)
    (run / "meta.yaml").write_text("x: 1\n")
    (run / "metrics" / "loss").write_text("1700000000000 2.5 0\nnot a metric\n")
    report = imported.run(tmp_path)

    (bad,) = report.errors
    assert "no metric of MLflow" in str(bad.error)
    assert [value for *_, value in imported.points()] == [2.5]
