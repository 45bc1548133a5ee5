"""Stacks of a run in a store, over an API and by the command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ranklog.api.local import make_handler
from ranklog.cli.main import main
from ranklog.client import Client
from ranklog.errors import BadInput
from ranklog.importer import import_paths
from ranklog.store.open import open_store
from tests.api.job import call
from tests.spmd.test_stacks import SPY, fault_dump

NOW_NS = 4_102_444_800_000_000_000


@pytest.fixture
def store(tmp_path: Path) -> str:
    """Four ranks: three wait, one reads; rank 4 said nothing of its stacks; rank 5's are py-spy's."""
    logs = tmp_path / "logs"
    logs.mkdir()
    for rank in range(4):
        at = "read_shard" if rank == 2 else "all_reduce"
        text = f"2026-05-01 10:00:00,000 INFO step 1\n{fault_dump('old', '<module>')}"
        text += f"\n2026-05-01 10:05:00,000 INFO stuck\n{fault_dump(at, 'step', '<module>')}\n"
        (logs / f"rank-{rank}.log").write_text(text)
    (logs / "rank-4.log").write_text("2026-05-01 10:00:00,000 INFO step 1\n")
    (logs / "rank-5.log").write_text(SPY)
    url = str(tmp_path / "store")
    opened = open_store(url, create=True)
    import_paths([str(logs)], store=opened, tenant="default", run="job", now_ns=NOW_NS)
    return url


def test_groups_of_the_newest_dumps_stand_odd_ones_first(store: str) -> None:
    found = Client(store=store).stacks(run="job")
    assert [(g["ranks"], g["odd"], g["waits"]) for g in found.groups] == [
        ([2], True, False),
        ([5], True, True),
        ([0, 1, 3], False, True),
    ]
    assert found.missing == [4]
    assert found.odd == [2, 5]
    assert found.groups[0]["reason"] == "Timeout (0:05:00)!"
    [thread] = found.groups[0]["threads"]
    assert [frame["function"] for frame in thread["frames"]] == ["read_shard", "step", "<module>"]


def test_a_query_leaves_ranks_out(store: str) -> None:
    found = Client(store=store).stacks(run="job", rank="0-1")
    assert [group["ranks"] for group in found.groups] == [[0, 1]]


def test_the_api_answers_the_same(store: str) -> None:
    handler = make_handler(open_store(store), clock_ns=lambda: NOW_NS)
    status, found, _ = call(handler, "POST", "/v1/stacks", {"run": "job", "thread": "all"})
    mine = Client(store=store).stacks(run="job", thread="all").to_json()
    assert status == 200
    assert (found["groups"], found["missing"]) == (mine["groups"], mine["missing"])
    assert call(handler, "POST", "/v1/stacks", {})[0] == 400


def test_the_command_prints_groups_and_can_exit_with_4(
    store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["stacks", "--store", store, "--run", "job"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("odd: 1 rank (2)")
    assert "no dump of rank 4" in said.err
    assert main(["stacks", "--store", store, "--run", "job", "--json", "--exit-code"]) == 4
    rows = [json.loads(row) for row in capsys.readouterr().out.splitlines()]
    assert [row["ranks"] for row in rows[:-1]] == [[2], [5], [0, 1, 3]]
    assert rows[-1]["missing"] == [4]


def test_a_run_without_dumps_is_nothing_found(
    store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["stacks", "--store", store, "--run", "job", "--rank", "4"]) == 1
    assert "no stack dumps" in capsys.readouterr().err


def test_a_run_has_to_be_named(store: str) -> None:
    with pytest.raises(BadInput, match="which run"):
        Client(store=store).stacks()
    with pytest.raises(BadInput, match="no thread"):
        Client(store=store).stacks(run="job", thread="some")
