"""Healthy runs have no odd rank: real logs, and simulated jobs with all their noise."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranklog.client import Client
from ranklog.importer import import_paths
from ranklog.store.memory import MemoryStore
from tests.faults.simulate import simulate
from tests.faults.triage import imported

NOW_NS = 4_102_444_800 * 10**9


@pytest.mark.data
@pytest.mark.parametrize(
    "name",
    [
        "noise/oracle_lora_512rank_nccl_warn_teardown.txt",
        "noise/dell_retinanet_nccl_warn_unlabelled.txt",
        "multirank/hpe_llama31_8b_64rank_import_tracebacks.txt",
        "multirank/mangoboost_mi325x_rccl_16rank.txt",
        "multirank/smc_gpt3_512rank.txt",
        "failures/dell_rgat_h200_healthy_sibling.txt",
        "failures/hpe_ssd_finalizer_tracebacks_benign.txt",
        "failures/smc_bert_keyerror_srun_labelled.log",
    ],
)
def test_real_logs_of_healthy_runs_have_no_odd_rank(name: str, data_dir: Path) -> None:
    store = MemoryStore()
    path = data_dir / "logs" / name
    import_paths([str(path)], store=store, tenant="default", run="r", now_ns=NOW_NS)
    with Client(store=store) as client:
        assert client.outliers(run="r").odd == []


@pytest.mark.parametrize("seed", [0, 1, 3, 4])
def test_simulated_healthy_jobs_have_no_odd_rank(seed: int) -> None:
    with imported(simulate(1_000_000 + seed, fault="healthy", ranks=16)) as client:
        assert client.outliers(run="job").odd == []


def test_a_slow_node_is_named() -> None:
    job = simulate(49, fault="slow_node", layout="sdk", ranks=64)
    with imported(job) as client:
        assert set(client.outliers(run="job").odd) == job.truth.ranks
