"""Every real log comes back byte for byte, with the ranks that are known of it."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from ranklog.model.frame import TS_ARRIVAL
from ranklog.model.levels import ERROR
from tests.importer.imported import Imports, Stored

pytestmark = pytest.mark.data


def _manifest(data_dir: Path) -> dict[str, dict[str, str]]:
    with (data_dir / "MANIFEST.tsv").open() as file:
        return {row["file"]: row for row in csv.DictReader(file, delimiter="\t")}


@pytest.fixture(scope="module")
def logs(data_dir: Path) -> Iterator[dict[str, Stored]]:
    with pytest.MonkeyPatch.context() as patch:
        imports = Imports(patch)
        imports.run(data_dir / "logs")
        assert imports.run(data_dir / "logs").stored == 0
        yield imports.by_channel()


def test_every_log_comes_back_byte_for_byte(logs: dict[str, Stored], data_dir: Path) -> None:
    files = [path for path in (data_dir / "logs").rglob("*") if path.is_file()]
    assert len(logs) == len(files)
    for path in files:
        stored = logs[path.relative_to(data_dir / "logs").as_posix()]
        content = path.read_bytes()
        assert stored.content == content, path
        parts = content.split(b"\n")
        assert len(stored.rows) == len(parts) - (parts[-1] == b""), path
    for name, row in _manifest(data_dir).items():
        assert len(logs[name].rows) in (int(row["lines"]), int(row["lines"]) + 1), name


# Files whose lines can be given to ranks: all of 0 .. n-1 are met.
RANKED = {
    "failures/dell_rgat_h200_healthy_sibling.txt": 8,
    "failures/smc_bert_keyerror_srun_labelled.log": 8,
    "noise/oracle_lora_512rank_nccl_warn_teardown.txt": 512,
    "multirank/dell_llama31_8b_16rank_nccl_info.txt": 16,
    "multirank/smc_gpt3_512rank.txt": 512,
    "multirank/hpe_llama31_8b_64rank_import_tracebacks.txt": 64,
    "megatron/bigscience_meg_ds_3d_n16_64rank_nccl.out": 64,
    "nccl/bigscience_allreduce_n16_v100.txt": 64,
}


def test_lines_have_the_ranks_that_are_known(logs: dict[str, Stored]) -> None:
    for name, count in RANKED.items():
        found = {row.rank for row in logs[name].rows} - {None}
        assert found == set(range(count)), name
    for rank in range(2):
        assert logs[f"perrank/oscar_paddle/workerlog.{rank}"].stream.rank == rank
        # nothing in these says that there is one node only
        stream = logs[f"perrank/svtas/workerlog.{rank}"].stream
        assert (stream.rank, stream.local_rank) == (None, rank)


def test_no_rank_is_beyond_the_world(logs: dict[str, Stored], data_dir: Path) -> None:
    for name, row in _manifest(data_dir).items():
        if row["ranks"].isdecimal():
            ranks = {line.rank for line in logs[name].rows} - {None}
            assert max(ranks, default=0) < int(row["ranks"]), name  # type: ignore[type-var]


def test_labelled_files_keep_launchers_lines_unranked(logs: dict[str, Stored]) -> None:
    for row in logs["multirank/hpe_llama31_8b_64rank_import_tracebacks.txt"].rows:
        assert (row.rank is None) == (not row.text.lstrip(b" ")[:1].isdigit()), row


def test_years_lie_in_the_runs_own_time(logs: dict[str, Stored]) -> None:
    for name in ("failures/redhat_lora_segv_all8_torchelastic.log",):
        years = Counter(row.ts_ns // (365.25 * 86_400e9) for row in logs[name].rows)
        assert set(years) == {2024 - 1970}, name


def test_every_labelled_rank_has_its_own_traceback(logs: dict[str, Stored]) -> None:
    rows = logs["failures/smc_bert_keyerror_srun_labelled.log"].rows
    heads = [row for row in rows if row.body.startswith(b"Traceback")]
    assert sorted(row.rank for row in heads) == list(range(8))  # type: ignore[type-var]
    for head in heads:
        record = [row for row in rows if row.group == head.seq]
        assert {row.rank for row in record} == {head.rank}
        assert record[-1].body.startswith(b"KeyError: ")
        assert {row.level for row in record} == {ERROR}


def test_torchrun_trees_are_ranks_and_their_consoles_copies(
    imports: Imports, data_dir: Path
) -> None:
    labels = json.loads((data_dir / "torchrun" / "labels.json").read_text())
    for name, label in labels.items():
        imports.run(data_dir / "torchrun" / name, run=name)
        mine = [stored for stored in imports.streams if stored.stream.run == name]
        for stored in mine:
            assert stored.stream.source is not None
            assert stored.content == Path(stored.stream.source).read_bytes()
            if stored.stream.local_rank is not None:
                node = 2 if stored.stream.host == "node1" else 0
                assert stored.stream.rank == node + stored.stream.local_rank, stored.stream
        is_tee = "-t 3" in label["torchrun_args"] or name == "mn_ok"
        consoles = [stored for stored in mine if stored.stream.local_rank is None]
        assert {stored.stream.copy for stored in consoles} == {is_tee}, name


def test_srun_labels_are_ranks(imports: Imports, data_dir: Path) -> None:
    imports.run(data_dir / "slurm")
    streams = imports.by_channel()
    assert Counter(row.rank for row in streams["kill.txt"].rows) == {0: 9, 1: 7, None: 4}
    assert Counter(row.rank for row in streams["ok.txt"].rows) == {0: 16, 1: 13}
    for stored in streams.values():
        assert not any(row.flags & TS_ARRIVAL for row in stored.rows)
