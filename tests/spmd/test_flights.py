"""Who keeps the others, by the flight recorder's entries of all ranks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ranklog.client import Client
from ranklog.importer import import_paths
from ranklog.model.answer import Line
from ranklog.spmd.flights import FlightVerdict, flight_evidence
from ranklog.store.memory import MemoryStore
from tests.importer.flight_dumps import dump, entry, pickled, waiting


def lines_of(folder: Path, dumps: dict[int, dict[str, Any]]) -> list[Line]:
    for rank, value in dumps.items():
        (folder / f"nccl_trace_rank_{rank}").write_bytes(pickled(value))
    store = MemoryStore()
    import_paths(
        [str(folder)], store=store, tenant="default", run="job", now_ns=4_102_444_800 * 10**9
    )
    return list(Client(store=store).lines("flight recorder", run="job"))


def judged(folder: Path, dumps: dict[int, dict[str, Any]]) -> FlightVerdict:
    found = flight_evidence(lines_of(folder, dumps))
    assert found is not None
    return found


DONE = [entry(1), entry(2)]


def test_a_rank_that_did_not_enqueue_is_missing(tmp_path: Path) -> None:
    dumps = {rank: dump([*DONE, waiting(3)]) for rank in (0, 1, 3)} | {2: dump(DONE)}
    found = judged(tmp_path, dumps)
    assert (found.kind, found.ranks, found.pg, found.seq) == ("missing", {2}, "0", 3)
    assert "its last one is 2" in found.why
    assert {line.rank for line in found.lines} == {0, 1, 3}


@pytest.mark.parametrize(
    "other",
    [
        {"profiling_name": "nccl:broadcast"},
        {"input_sizes": [[1023]]},
        {"input_dtypes": ["Half"]},
    ],
)
def test_another_operation_size_or_type_is_a_mismatch(
    tmp_path: Path, other: dict[str, Any]
) -> None:
    dumps = {rank: dump([*DONE, waiting(3)]) for rank in (0, 1, 3)}
    dumps[2] = dump([*DONE, waiting(3, **other)])
    found = judged(tmp_path, dumps)
    assert (found.kind, found.ranks, found.seq) == ("mismatch", {2}, 3)
    assert found.lines[0].rank == 2


def test_uneven_sizes_of_an_all_to_all_are_no_mismatch(tmp_path: Path) -> None:
    dumps = {
        rank: dump([waiting(1, profiling_name="nccl:all_to_all", input_sizes=[[rank]])])
        for rank in range(4)
    }
    assert judged(tmp_path, dumps).kind == "undecided"


def test_a_rank_without_a_dump_is_named_where_its_peers_wait(tmp_path: Path) -> None:
    found = judged(tmp_path, {rank: dump([*DONE, waiting(3)]) for rank in (0, 1, 2)})
    assert (found.kind, found.ranks) == ("no_dump", {3})


def test_who_enqueued_and_did_not_start_is_named(tmp_path: Path) -> None:
    dumps = {rank: dump([waiting(1)]) for rank in range(4)}
    dumps[1] = dump([waiting(1, state="scheduled")])
    found = judged(tmp_path, dumps)
    assert (found.kind, found.ranks) == ("not_started", {1})


def test_where_all_wait_alike_it_is_undecided(tmp_path: Path) -> None:
    found = judged(tmp_path, {rank: dump([waiting(1)]) for rank in range(4)})
    assert (found.kind, found.ranks) == ("undecided", frozenset())


def test_a_rank_that_waits_in_another_group_is_a_victim(tmp_path: Path) -> None:
    tp = {"pg_id": 1, "process_group": ("7", "tp")}
    config = {
        "0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"},
        "7": {"name": "7", "desc": "tp", "ranks": "[2, 3]"},
    }
    dumps = {rank: dump([entry(1), waiting(2)], pg_config=config) for rank in (0, 1)}
    dumps[2] = dump([entry(1), waiting(1, **tp)], pg_config=config)
    dumps[3] = dump([entry(1)], pg_config=config)
    found = judged(tmp_path, dumps)
    assert (found.kind, found.ranks) == ("missing", {3})


def test_completed_collectives_and_other_lines_are_no_evidence(tmp_path: Path) -> None:
    assert flight_evidence(lines_of(tmp_path, {rank: dump(DONE) for rank in range(4)})) is None
    assert flight_evidence([]) is None


def test_point_to_point_entries_are_not_compared(tmp_path: Path) -> None:
    send = waiting(1, is_p2p=True, profiling_name="nccl:send 0->1")
    assert flight_evidence(lines_of(tmp_path, {0: dump([*DONE, send]), 1: dump(DONE)})) is None
