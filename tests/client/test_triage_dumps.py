"""Triage of runs that stand still, by their dumps: stacks of all ranks, flight recorders."""

from __future__ import annotations

from pathlib import Path

from ranklog.client import Client
from ranklog.client.triage_answer import Triage
from ranklog.importer import import_paths
from ranklog.store.memory import MemoryStore
from tests.importer.flight_dumps import dump, entry, pickled, waiting
from tests.spmd.test_stacks import SPY, fault_dump

NOW_NS = 4_102_444_800 * 10**9
STEP = "2026-05-01 10:00:{0:02d},000 INFO train train.py:41 iteration {0} loss 2.5\n"
DONE = [entry(1), entry(2)]


def triaged(folder: Path) -> Triage:
    """The files as a run."""
    store = MemoryStore()
    import_paths([str(folder)], store=store, tenant="default", run="job", now_ns=NOW_NS)
    return Client(store=store).triage(run="job")


def stuck(folder: Path, *, then: int = 8) -> Triage:
    """Four ranks dump their stacks after eight iterations, rank 2's elsewhere, and go on to `then`."""
    for rank in range(4):
        at = "read_shard" if rank == 2 else "all_reduce"
        text = "".join(STEP.format(k) for k in range(8))
        text += fault_dump(at, "step", "<module>") + "\n"
        text += "".join(STEP.format(k) for k in range(8, then))
        (folder / f"rank-{rank}.log").write_text(text)
    return triaged(folder)


def test_a_rank_that_stands_elsewhere_keeps_the_others(tmp_path: Path) -> None:
    found = stuck(tmp_path)
    assert (found.fault, found.suspects[0]["rank"]) == ("hang", 2)
    assert found["why"] == "stands in read_shard, where its peers do not"
    assert "ranklog stacks --run job@import" in [s["command"] for s in found["next_steps"]]


def test_stacks_that_the_run_survived_are_no_hang(tmp_path: Path) -> None:
    assert stuck(tmp_path, then=20).fault == "none"


def test_stacks_of_py_spy_alone_are_enough(tmp_path: Path) -> None:
    for rank in range(4):
        text = SPY.replace("wait (torch", "read (torch") if rank == 1 else SPY
        (tmp_path / f"rank-{rank}.txt").write_text(text)
    found = triaged(tmp_path)
    assert (found.fault, found.suspects[0]["rank"]) == ("hang", 1)


def test_a_rank_that_a_flight_recorder_misses_is_the_suspect(tmp_path: Path) -> None:
    for rank in range(4):
        said = DONE if rank == 2 else [*DONE, waiting(3)]
        (tmp_path / f"nccl_trace_rank_{rank}").write_bytes(pickled(dump(said)))
    found = triaged(tmp_path)
    assert (found.fault, found.suspects[0]["rank"]) == ("collective_timeout", 2)
    command = found["next_steps"][0]["command"]
    assert command == "ranklog search flight:entry --run job@import"


def test_another_operation_in_a_flight_recorder_is_a_mismatch(tmp_path: Path) -> None:
    for rank in range(4):
        other = {"profiling_name": "nccl:broadcast"} if rank == 3 else {}
        said = dump([*DONE, waiting(3, **other)])
        (tmp_path / f"nccl_trace_rank_{rank}").write_bytes(pickled(said))
    found = triaged(tmp_path)
    assert (found.fault, found.suspects[0]["rank"]) == ("collective_mismatch", 3)


def test_recorders_that_all_wait_for_the_same_leave_it_open(tmp_path: Path) -> None:
    for rank in range(4):
        (tmp_path / f"nccl_trace_rank_{rank}").write_bytes(pickled(dump([*DONE, waiting(3)])))
    found = triaged(tmp_path)
    assert (found.fault, found["undecidable"]) == ("collective_timeout", True)
    assert "all joined number 3" in found["why"]


def test_recorders_in_which_everything_is_completed_say_nothing(tmp_path: Path) -> None:
    for rank in range(4):
        (tmp_path / f"nccl_trace_rank_{rank}").write_bytes(pickled(dump(DONE)))
    assert triaged(tmp_path).fault == "none"
