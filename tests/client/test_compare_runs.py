"""Run against run: what changed in the manifests, then in the lines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ranklog import limits
from ranklog.client import Client
from ranklog.errors import BadInput
from ranklog.importer import import_paths
from ranklog.store.memory import MemoryStore
from tests.client.test_manifests import telling
from tests.client.test_search import put
from tests.ingest.frames import T0, Row, stream

SECOND = 1_000_000_000
NOW_NS = 4_102_444_800 * SECOND


def launch(store: MemoryStore, name: str, at: int, facts: dict[str, Any], last: str) -> None:
    """Two ranks, three iterations, and what the job says at its end."""
    rows = []
    for rank in range(2):
        one = replace(stream(rank), launch=name)
        ts = T0 + at * 3_600 * SECOND
        for i in range(3):
            rows.append(Row(f"loss: {2.5 - i}", ts=ts + i * SECOND, stream=one, iteration=i))
        rows.append(Row(last, ts=ts + 9 * SECOND, stream=one, iteration=3))
    zero = replace(stream(0), launch=name)
    one = replace(stream(1), launch=name)
    streams = [telling(zero, facts, rows=4), telling(one, {"rank": 1, "host": "gpu-1"}, rows=4)]
    put(store, name, rows, streams=streams)


GIVEN = {
    "config": {"lr": 0.1, "betas": [0.9, 0.95], "name": "small"},
    "git": {"commit": "abc", "dirty": 0},
    "packages": {"numpy": "2.0"},
    "libraries": {"torch": "2.4"},
    "environment": {"NCCL_DEBUG": "WARN", "SLURM_JOB_ID": "1", "MASTER_PORT": "1"},
    "datasets": {"c4": "v3"},
    "command": ["train.py", "--lr", "0.1"],
    "host": "gpu-1",
    "drivers": {"nvidia": "550"},
}


@pytest.fixture
def client() -> Client:
    store = MemoryStore()
    launch(store, "17", 0, GIVEN, "saved")
    changed = GIVEN | {
        "config": {"lr": 0.3, "betas": [0.9, 0.95], "warmup": 100, "name": "small"},
        "git": {"commit": "def", "dirty": 1},
        "packages": {},
        "environment": {"NCCL_DEBUG": "INFO", "SLURM_JOB_ID": "2", "MASTER_PORT": "2"},
        "drivers": {"nvidia": "570"},
    }
    launch(store, "18", 1, changed, "CUDA out of memory")
    return Client(store=store, tenant="acme")


@pytest.mark.parametrize("other", ["llama@17", "llama~1", "~1", "~ok", "llama~ok"])
def test_what_changed_in_the_manifests_comes_before_the_lines(client: Client, other: str) -> None:
    rows = client.compare(run="llama", with_=other).rows
    facts = [row for row in rows if row["op"] == "manifest"]
    assert rows[: len(facts)] == facts
    assert [(x["section"], x["key"], x["change"], list(x["values"].values())) for x in facts] == [
        ("config", "config.lr", "changed", [0.3, 0.1]),
        ("config", "config.warmup", "removed", [100, None]),
        ("code", "git.commit", "changed", ["def", "abc"]),
        ("code", "git.dirty", "changed", [1, 0]),
        ("packages", "packages.numpy", "added", [None, "2.0"]),
        ("drivers", "drivers.nvidia", "changed", ["570", "550"]),
        ("environment", "environment.NCCL_DEBUG", "changed", ["INFO", "WARN"]),
    ]
    assert list(facts[0]["values"]) == ["llama@18", "llama@17"]
    assert facts[0]["distance"] == pytest.approx(0.2)
    hunks = [(x["op"], x["iteration"], list(x["ranks"])) for x in rows[len(facts) :]]
    assert {x[1] for x in hunks} == {3} and hunks[0][2] == ["llama@18:0", "llama@17:0"]


def test_runs_that_do_the_same_are_equal_whenever_they_ran(client: Client) -> None:
    store = MemoryStore()
    launch(store, "17", 0, GIVEN, "saved")
    launch(store, "18", 7, GIVEN | {"environment": {"SLURM_JOB_ID": "9"}}, "saved")
    found = Client(store=store, tenant="acme").compare(run="llama", with_="~1", ranks=[0, 1])
    assert [row["key"] for row in found.rows] == ["environment.NCCL_DEBUG"]


def test_a_run_is_not_held_against_itself_nor_against_several(client: Client) -> None:
    with pytest.raises(BadInput, match="against itself"):
        client.compare(run="llama", with_="llama@18")
    with pytest.raises(BadInput, match="launches"):
        client.compare(run="llama@*", ranks=[0, 1])


def test_hunks_are_limited_and_the_answer_says_so(client: Client) -> None:
    found = client.compare(run="llama", with_="~1", ranks=[0, 1], limit=1)
    assert sum(row["op"] != "manifest" for row in found.rows) == 1
    assert any("the first 1 differing" in note for note in found.report.notes)


def test_imported_runs_say_that_nothing_is_known_of_their_configuration(tmp_path: Any) -> None:
    store = MemoryStore()
    for name, ranks in (("a", 2), ("b", 3)):
        folder = tmp_path / name
        folder.mkdir()
        for rank in range(ranks):
            text = "".join(f"[rank{rank}]: step={i} loss={2.5 - i / 10}\n" for i in range(9))
            (folder / f"rank_{rank}.log").write_text(text + ("odd\n" if name == "b" else ""))
        import_paths([str(folder)], store=store, tenant="default", run=name, now_ns=T0)
    found = Client(store=store).compare(run="a", with_="b")
    assert any("a@import has no manifest" in note for note in found.report.notes)
    assert any("b@import has no manifest" in note for note in found.report.notes)
    assert [row["op"] for row in found.rows if row["op"] != "manifest"] == ["insert"]


def test_surviving_iterations_are_compared_across_attempts() -> None:
    store = MemoryStore()
    rows = []
    for attempt, iterations in enumerate((range(8), range(5, 12))):
        one = stream(0, attempt=attempt, launch="a")
        for i in iterations:
            ts = T0 + (attempt * 60 + i) * SECOND
            text = "broken" if (attempt, i) == (0, 6) else "step done"
            rows.append(Row(text, ts=ts, stream=one, iteration=i))
    straight = stream(0, launch="b")
    rows += [
        Row("step done", ts=T0 + (3_600 + i) * SECOND, stream=straight, iteration=i)
        for i in range(12)
    ]
    put(store, "1", rows)
    client = Client(store=store, tenant="acme")
    assert client.compare(run="llama@a", with_="llama@b", ranks=[0]).rows == []
    assert client.compare(run="llama@a", with_="llama@b", ranks=[0], attempt="0").rows != []


def test_runs_that_name_no_ranks_are_compared_by_their_consoles(tmp_path: Any) -> None:
    store = MemoryStore()
    for name, last in (("a", "done"), ("b", "Killed")):
        path = tmp_path / f"{name}.log"
        path.write_text("".join(f"step {i} loss {2.5 - i}\n" for i in range(5)) + last + "\n")
        import_paths([str(path)], store=store, tenant="default", run=name, now_ns=T0)
    found = Client(store=store).compare(run="a", with_="b")
    assert {tuple(row["ranks"]) for row in found.rows} == {("a@import", "b@import")}
    texts = [line["text"] for row in found.rows for x in row["ranks"].values() for line in x]
    assert sorted(texts) == ["Killed", "done"]
    assert any("names no ranks" in note for note in found.report.notes)


@pytest.mark.data
@pytest.mark.parametrize(
    ("healthy", "sick", "said"),
    [
        ("oracle_resnet_ok.log", "oracle_resnet_time_limit.log", "DUE TO TIME LIMIT"),
        ("oracle_resnet_ok.log", "oracle_resnet_mxnet_nccl_frames_all8.log", "Could not open file"),
    ],
)
def test_a_failure_is_held_against_its_healthy_sibling(
    healthy: str, sick: str, said: str, data_dir: Any
) -> None:
    store = MemoryStore()
    for name in (healthy, sick):
        path = data_dir / "logs" / "failures" / name
        import_paths([str(path)], store=store, tenant="default", run=name, now_ns=NOW_NS)
    client = Client(store=store)
    found = client.compare(run=healthy, with_=sick, limit=None)
    inserted = [row["ranks"][f"{sick}@import"] for row in found.rows if row["op"] == "insert"]
    assert any(said in line["text"] for lines in inserted for line in lines)
    for name in (healthy, sick):
        assert client.count("superseded:true", run=name).count == 0
        [row] = client.runs(run=name).rows
        assert row["lines"] > 0


@pytest.mark.data
def test_real_ranks_are_the_same_as_columns_and_line_by_line(
    data_dir: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = MemoryStore()
    path = data_dir / "logs" / "multirank" / "mangoboost_mi325x_rccl_16rank.txt"
    import_paths([str(path)], store=store, tenant="default", run="r", now_ns=NOW_NS)
    client = Client(store=store)
    lines = client.compare(run="r", ranks=[0, 1], limit=None)
    monkeypatch.setattr(limits, "COMPARE_LINES_MAX", 0)
    columns = client.compare(run="r", ranks=[0, 1], limit=None)
    texts = [
        [line["id"] for row in found.rows for x in row["ranks"].values() for line in x]
        for found in (lines, columns)
    ]
    # of one template are more lines than of one shape: a few find another partner
    assert len(set(texts[0]) ^ set(texts[1])) <= len(set(texts[0])) // 20


def test_where_nothing_was_read_of_any_rank_there_is_nothing_to_compare() -> None:
    store = MemoryStore()
    put(store, "1", [Row("said", ts=T0, stream=stream(rank)) for rank in (0, 1)])
    found = Client(store=store, tenant="acme").compare("since:1h", run="llama")
    assert found.rows == [] and found.completeness.state == "behind"
    assert found.report.notes == ["nothing was read of any rank: there is nothing to compare"]
