"""Triage over real logs: failures, noise that is none, torchrun and Slurm with their labels."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ranklog.client import Client
from ranklog.client.triage_answer import Triage
from ranklog.importer import import_paths
from ranklog.store.memory import MemoryStore

pytestmark = pytest.mark.data
NOW_NS = 4_102_444_800 * 10**9

# file of logs/failures: class, whom
FAILURES = {
    "azure_maskrcnn_fail_c.log": ("import_or_config", "all"),
    "azure_maskrcnn_filenotfound_interleaved.log": ("import_or_config", "all"),
    "lenovo_bert_keyerror_4of8_torchelastic.log": ("import_or_config", "all"),
    "smc_bert_keyerror_srun_labelled.log": ("import_or_config", "all"),
    "redhat_lora_segv_all8_torchelastic.log": ("crash_signal", "all"),
    "oracle_resnet_mxnet_nccl_frames_all8.log": ("import_or_config", "all"),
    "oracle_resnet_time_limit.log": ("external_kill", None),
    "hpe_ssd_finalizer_tracebacks_benign.txt": ("none", None),
    "dell_rgat_h200_healthy_sibling.txt": ("none", None),
    "oracle_resnet_ok.log": ("none", None),
}
# true_cause of torchrun/labels.json: the class that says it
CAUSES = {
    "python_exception": "numeric",  # a check of the loss that raises
    "hang_then_gloo_timeout": "collective_timeout",
    "sigkill": "external_kill",
    "os_exit_7": "unknown",
    "sigsegv": "crash_signal",
    "external_sigterm": "external_kill",
    "ok": "none",
}
FOLDERS = ("noise", "megatron", "hf", "nccl", "nanogpt", "mllog", "text", "titan", "ezpz", "hw")


def triage(path: Path) -> Triage:
    store = MemoryStore()
    import_paths([str(path)], store=store, tenant="default", run="job", now_ns=NOW_NS)
    return Client(store=store).triage(run="job")


def blamed(found: Triage) -> object:
    """The first suspect's rank, or "all"; None for nobody."""
    if not found.suspects:
        return None
    first = found.suspects[0]
    return first["ranks"] if first["rank"] is None else first["rank"]


@pytest.mark.parametrize("name", FAILURES)
def test_real_failures_are_whose_they_are(name: str, data_dir: Path) -> None:
    found = triage(data_dir / "logs" / "failures" / name)
    assert (found.fault, blamed(found)) == FAILURES[name]


def test_torchrun_launches_are_labelled_right(data_dir: Path) -> None:
    labels = json.loads((data_dir / "torchrun" / "labels.json").read_text())
    found = {name: triage(data_dir / "torchrun" / name) for name in labels}
    assert {name: (item.fault, blamed(item)) for name, item in found.items()} == {
        name: (CAUSES[label["true_cause"]], label["true_rank"]) for name, label in labels.items()
    }


def test_slurm_steps_are_told_apart(data_dir: Path) -> None:
    found = {name: triage(data_dir / "slurm" / f"{name}.txt") for name in ("ok", "kill")}
    assert (found["ok"].fault, blamed(found["ok"])) == ("none", None)
    assert (found["kill"].fault, blamed(found["kill"])) == ("external_kill", 1)


@pytest.mark.parametrize("folder", FOLDERS)
def test_logs_of_runs_without_a_fault_raise_no_suspect(folder: str, data_dir: Path) -> None:
    for path in sorted((data_dir / "logs" / folder).iterdir()):
        assert triage(path).suspects == [], path


@pytest.mark.parametrize("name", ["multirank", "perrank/oscar_paddle", "telemetry"])
def test_many_ranks_and_files_without_a_fault_raise_no_suspect(name: str, data_dir: Path) -> None:
    path = data_dir / "logs" / name
    for item in sorted(path.iterdir()) if name == "multirank" else [path]:
        assert triage(item).suspects == [], item
