"""Flight recorder dumps are imported as lines; what is none of them is refused by name."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ranklog.client import Client
from ranklog.importer import import_paths
from ranklog.importer.flights import is_flight, render_flight
from ranklog.importer.report import ImportReport
from ranklog.model.answer import Line
from ranklog.store.memory import MemoryStore
from tests.importer.flight_dumps import T0, as_json, dump, entry, pickled, waiting

NOW_NS = 4_102_444_800_000_000_000


def bring_in(*paths: Path, **options: Any) -> tuple[ImportReport, list[Line]]:
    store = MemoryStore()
    names = [str(path) for path in paths]
    report = import_paths(names, store=store, tenant="default", run="job", now_ns=NOW_NS, **options)
    return report, list(Client(store=store).lines("", run="job"))


def test_an_entry_is_a_line_with_typed_metadata_call_site_and_time(tmp_path: Path) -> None:
    path = tmp_path / "nccl_trace_rank_3"
    path.write_bytes(pickled(dump([entry(57), waiting(58)])))
    report, lines = bring_in(path)
    assert report.errors == []
    first = lines[0]
    assert (first.rank, first.ts_ns, first.call_site) == (
        3,
        T0 + 57_000_000_000,
        "/srv/train.py:88",
    )
    assert first.metadata == {
        "flight": "entry",
        "op": "nccl:all_reduce",
        "pg": "0",
        "pg_desc": "default_pg",
        "pg_id": 0,
        "collective_seq_id": 57,
        "p2p_seq_id": 0,
        "op_id": 57,
        "record_id": 56,
        "state": "completed",
        "timeout_ms": 600_000,
        "time_discovered_started_ns": T0 + 57_000_000_001,
        "time_discovered_completed_ns": T0 + 57_000_000_002,
        "input_sizes": "[[1024]]",
        "input_dtypes": "[Float]",
        "output_sizes": "[[1024]]",
        "output_dtypes": "[Float]",
        "is_p2p": 0,
        "retired": 1,
    }
    assert lines[1].text == "  step at /srv/train.py:88"
    assert lines[1].group == first.seq
    said = {str(line.metadata["flight"]): line.metadata for line in lines if line.metadata}
    assert said["group"]["members"] == "0-3"
    assert (said["status"]["last_enqueued"], said["status"]["last_completed"]) == (58, 57)
    assert said["dump"]["version"] == "2.10"


def test_json_and_pickles_of_any_protocol_say_the_same(tmp_path: Path) -> None:
    value = dump([entry(1), waiting(2)])
    texts = {render_flight("x", [pickled(value, protocol)]) for protocol in (2, 3, 4, 5)}
    assert texts == {render_flight("x", [as_json(value)])}


def test_numbers_that_json_has_as_text_are_numbers() -> None:
    value = dump([entry(1)])
    value["pg_status"]["0"] = {"last_enqueued_collective": "7"}
    assert b"last_enqueued=7" in render_flight("x", [as_json(value)])


@pytest.mark.parametrize("version", ["1.5", "2.0", "2.4", "2.10"])
def test_members_that_a_version_lacks_are_left_out(tmp_path: Path, version: str) -> None:
    old: dict[str, Any] = {"pg_id": 0, "seq_id": 4, "profiling_name": "nccl:broadcast"}
    if version != "1.5":
        old["process_group"] = ["0", "default_pg"]
    path = tmp_path / "nccl_trace_rank_0"
    path.write_bytes(pickled({"version": version, "entries": [old]}))
    report, lines = bring_in(path)
    assert report.errors == []
    assert (lines[0].metadata["op"], lines[0].metadata["seq_id"]) == ("nccl:broadcast", 4)
    assert "state" not in lines[0].metadata


def test_packed_and_piped_dumps_and_the_rank_in_them(tmp_path: Path) -> None:
    path = tmp_path / "flight.gz"
    path.write_bytes(gzip.compress(pickled(dump([entry(1)], rank=6))))
    _, lines = bring_in(path)
    assert {line.rank for line in lines} == {6}
    store = MemoryStore()
    with (tmp_path / "flight.gz").open("rb") as stream:
        report = import_paths(
            ["-"], store=store, tenant="t", run="job", rank=2, stdin=stream, now_ns=NOW_NS
        )
    assert (report.errors, report.ranks) == ([], [2, 6])


def test_the_same_dump_again_stores_nothing(tmp_path: Path) -> None:
    path, store = tmp_path / "nccl_trace_rank_0", MemoryStore()
    path.write_bytes(pickled(dump([entry(1)])))
    for stored in (5, 0):
        report = import_paths([str(path)], store=store, tenant="t", run="job", now_ns=NOW_NS)
        assert report.stored == stored


class _Run:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch /tmp/ranklog-was-here",)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (pickled({"pg_config": {}, "entries": [_Run()]}), "none of plain data"),
        (pickled(dump([entry(1)]))[:-40], "breaks off"),
        (pickled([1, 2, 3]), "no entries"),
        (pickled({"weights": "x"}), "neither entries"),
        (pickled({"entries": "x"}), "no entries"),
    ],
)
def test_a_file_by_the_name_of_a_dump_that_is_none_is_one_error(
    tmp_path: Path, content: bytes, why: str
) -> None:
    bad, good = tmp_path / "nccl_trace_rank_0", tmp_path / "nccl_trace_rank_1"
    bad.write_bytes(content)
    good.write_bytes(pickled(dump([entry(1)])))
    report, lines = bring_in(bad, good)
    [failed] = report.errors
    assert failed.error is not None
    assert "no flight recorder dump" in failed.error
    assert why in failed.error
    assert {line.rank for line in lines} == {1}
    assert not Path("/tmp/ranklog-was-here").exists()


def test_lists_that_share_themselves_do_not_grow() -> None:
    lists: list[Any] = ["x" * 100]
    for _ in range(20):
        lists = [lists] * 10
    assert len(render_flight("x", [pickled(dump([entry(1, input_sizes=lists)]))])) < 20_000


def test_names_with_blanks_and_equal_signs_stay_one_value(tmp_path: Path) -> None:
    path = tmp_path / "nccl_trace_rank_0"
    group = ("tp 0\nx", "a=b state=odd")
    path.write_bytes(pickled(dump([entry(1, process_group=group)])))
    _, lines = bring_in(path)
    said = lines[0].metadata
    assert (said["pg"], said["pg_desc"], said["state"]) == ("tp_0_x", "a_b_state_odd", "completed")


def test_logs_of_json_are_no_dumps() -> None:
    assert not is_flight("train.jsonl", json.dumps({"entries": 3, "loss": 1.0}).encode())
    assert not is_flight("rank-0.log", b"{'loss': 1.0}\n")
    assert not is_flight("model.pkl", pickled({"weights": [1]}))


_TORCH = """
import sys, torch, torch.distributed as dist
import torch._C._distributed_c10d as c10d
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
for _ in range(3):
    dist.all_reduce(torch.ones(4))
open(sys.argv[1], "wb").write(c10d._dump_fr_trace())
"""


def test_what_torch_really_dumps_is_imported(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    path = tmp_path / "nccl_trace_rank_0"
    environment = {**os.environ, "TORCH_FR_BUFFER_SIZE": "100"}
    subprocess.run(
        [sys.executable, "-c", _TORCH, str(path)], env=environment, check=True, timeout=120
    )
    report, lines = bring_in(path)
    assert report.errors == []
    entries = [line.metadata for line in lines if line.metadata.get("flight") == "entry"]
    assert [said["collective_seq_id"] for said in entries] == [1, 2, 3]
    assert {(said["op"], said["input_sizes"]) for said in entries} == {("gloo:all_reduce", "[[4]]")}
