"""Presets over the real logs, against plain Python: nothing that the survey counted is missed."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ranklog.rules.ruleset import RuleSet
from tests.rules.applying import evaluate, values

pytestmark = pytest.mark.data

LABELS = re.compile(r"^ *\d+: ?|^\[(?:rank|default)\d+\]: ?")
RULES = RuleSet.load()

# preset -> an expression of the survey, for Python's re on single lines
ORACLES = {
    "nccl_info": r"^[\w.-]+:\d+:\d+ \[\d+\] NCCL INFO .*$",
    "nccl_warn": r"^[\w.-]+:\d+:\d+ \[\d+\] \S+:\d+ NCCL WARN .*$",
    "nccl_init": r"rank (\d+) nranks (\d+) cudaDev (\d+) (?:nvmlDev \d+ )?busId (\w+)",
    "mllog": r":::MLLOG (\{.*\})\s*$",
    "dllogger": r"DLL \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6} - [^|]+? \| .*$",
    "megatron_iteration": r"^ *(?:\[[\d: .-]+\])? *iteration +\d+/ *\d+ \|.*$",
    "deepspeed_steps": r"^steps: \d+ loss: \S+ iter time \(s\): \S+ samples/sec: \S+",
    "python_dict": r"^\{'(?:loss|eval_loss|train_runtime)'.*\}",
    "modded_nanogpt": r"^step:\d+/\d+(?: (?:train|val)_loss:\S+)? train_time:[\d.]+(?:ms|s) "
    r"step_avg:(?:[\d.]+|nan|inf)ms",
    "llmc": r"^s:\d+ (?:trl:[\d.]+(?: lr:[\d.eE-]+ norm:[\d.]+)?|tel:[\d.]+|eval:[\d.]+)$",
    "paddle_epoch": r"- INFO - Epoch: \[\d+\], step: \[\d+\], lr: \S+, batch_loss: \S+, avg_loss",
    "mxnet_batch": r"Node\[\d+\] Epoch\[\d+\] Batch \[[\d-]+\]\tSpeed: ",
    "gnmt": r"TRAIN \[\d+\]\[\d+/\d+\]\tTime ",
    "elastic_rank": r"^  rank *: \d+ \(local_rank: \d+\)",
    "elastic_exitcode": r"^  exitcode *: -?\d+ ?\(pid: \d+\)",
    "srun_tasks": r"srun: error: \S+: tasks? [\d,-]+: .*$",
    "slurm_cancelled": r"error: \*\*\* (?:STEP|JOB) \S+ ON \S+ CANCELLED AT ",
    "oom_cuda": r"CUDA out of memory\. Tried to allocate [\d.]+ [KMG]iB\. GPU \d+ has a total capacity",
    "python_exception": r"^[\w.]+(?:Error|Exception|Empty|Interrupt): ?.*$",
    "xid": r"NVRM: Xid \(PCI:[0-9a-fA-F:.]+\): \d+, ",
    "apex_overflow": r"Gradient overflow\.  Skipping step, loss scaler",
    "tqdm": r"\d+%\|[^|]*\| *[\d.]+[kMG]?/[\d.]+[kMG]? \[[\d:]+<[\d:?]+, *[\d.?]+(?:s/it|it/s|[^,\]]*)",
    "generic_loss": r"train_ddp\.py:41 iteration \d+ loss ",
}


def bodies(path: Path) -> list[str]:
    text = path.read_bytes().decode("utf-8", "replace")
    lines = [line.removesuffix("\r").replace("\x00", "") for line in text.split("\n")]
    return [LABELS.sub("", LABELS.sub("", line)) for line in lines]


@pytest.fixture(scope="module")
def corpus(data_dir: Path) -> list[list[str]]:
    logs = sorted(p for p in (data_dir / "logs").rglob("*") if p.is_file())
    consoles = sorted(
        [*(data_dir / "torchrun").rglob("console*.txt"), *(data_dir / "slurm").glob("*.txt")]
    )
    return [bodies(path) for path in [*logs, *consoles]]


def test_presets_match_at_least_what_the_survey_counted(corpus: list[list[str]]) -> None:
    found: Counter[str] = Counter()
    expected: Counter[str] = Counter()
    for lines in corpus:
        result = evaluate(RULES, lines)
        assert result.failed == {} and result.left_out == {}
        found.update(result.matched)
        for name, pattern in ORACLES.items():
            oracle = re.compile(pattern)
            expected[name] += sum(1 for line in lines if oracle.search(line))
    assert {n: (found[n], c) for n, c in expected.items() if found[n] < c or not c} == {}


def read(data_dir: Path, name: str) -> tuple[list[str], list[dict[str, Any]]]:
    lines = bodies(data_dir / "logs" / name)
    return lines, values(evaluate(RULES, lines), len(lines))


def same(found: Any, expected: Any) -> bool:
    if isinstance(expected, float) and math.isnan(expected):
        return isinstance(found, float) and math.isnan(found)
    return bool(found == expected)


def check(
    lines: list[str], found: list[dict[str, Any]], oracle: Callable[[str], dict[str, Any] | None]
) -> int:
    """Lines that the oracle reads; each must have at least its pairs, with its values."""
    count = 0
    for line, pairs in zip(lines, found, strict=True):
        expected = oracle(line)
        if expected is None:
            continue
        count += 1
        wrong = {k: (pairs.get(k), v) for k, v in expected.items() if not same(pairs.get(k), v)}
        assert wrong == {}, line
    return count


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("megatron/bigscience_meg_ds_3d_on.out", 49),
        ("megatron/bigscience_meg_gpt2_n16_dp1_tp4_pp16-1809577.out", 9),
    ],
)
def test_megatron_values_equal_a_split_by_hand(data_dir: Path, name: str, least: int) -> None:
    spelling = {
        "consumed samples": ("consumed_samples", int),
        "elapsed time per iteration (ms)": ("elapsed_ms", float),
        "learning rate": ("learning_rate", float),
        "global batch size": ("global_batch_size", int),
        "lm loss": ("lm_loss", float),
        "lm-loss": ("lm_loss", float),
        "loss scale": ("loss_scale", float),
        "grad norm": ("grad_norm", float),
        "num zeros": ("num_zeros", float),
        "number of skipped iterations": ("skipped", int),
        "number of nan iterations": ("nan", int),
    }

    def oracle(line: str) -> dict[str, Any] | None:
        head = re.match(r" iteration +(\d+)/ *(\d+) \|", line)
        if not head:
            return None
        pairs: dict[str, Any] = {"iteration": int(head[1]), "total": int(head[2])}
        for cell in line[head.end() :].split("|"):
            key, colon, value = cell.strip().rpartition(": ")
            if colon:
                name, kind = spelling[key]
                pairs[name] = kind(value)
        return pairs

    assert check(*read(data_dir, name), oracle) == least


@pytest.mark.parametrize(
    "name",
    [
        "mllog/amd_mi355x_llama31_8b_mllog.txt",
        "mllog/google_maxtext_gpt3_mllog.txt",
        "mllog/nvidia_llama405b_2560gpu_mllog.txt",
        "failures/oracle_resnet_ok.log",
        "text/dell_resnet_mxnet_accuracy_nan.txt",
    ],
)
def test_mllog_values_equal_the_json(data_dir: Path, name: str) -> None:
    def oracle(line: str) -> dict[str, Any] | None:
        at = line.find(":::MLLOG {")
        if at < 0:
            return None
        document = json.loads(line[at + 9 :])
        pairs = {"event_type": document["event_type"], "key": document["key"]}
        value, metadata = document["value"], document["metadata"]
        if isinstance(value, (int, float)):
            pairs["value"] = int(value) if isinstance(value, bool) else value
        if isinstance(metadata, dict) and "step" in metadata:
            pairs["mllog_step"] = int(metadata["step"])
            # without a count of samples it may count epochs or tokens, beside a time of validation
            # it counts validation's batches
            validates = isinstance(value, dict) and next(iter(value)).startswith("validation")
            is_iteration = "samples_count" in metadata and not validates
            pairs["iteration"] = int(metadata["step"]) if is_iteration else None
        if isinstance(metadata, dict) and "samples_count" in metadata:
            pairs["samples_count"] = metadata["samples_count"]
        return pairs

    assert check(*read(data_dir, name), oracle) >= 90


def test_dllogger_values_equal_a_split_by_hand(data_dir: Path) -> None:
    def oracle(line: str) -> dict[str, Any] | None:
        head = re.search(r"DLL \S+ \S+ - Iteration (\d+) \|", line)
        if not head:
            return None
        cells = dict(cell.split(" : ") for cell in line[head.end() :].split(" | "))
        cells = {k.strip(): v.split()[0] for k, v in cells.items()}
        return {
            "iteration": int(head[1]),
            "train_acc": float(cells["train_acc"]),
            "iteration_time": float(cells["iteration_time"]),
            "train_loss": float(cells["train_loss"]),
            "cuda_graph": int(cells["last_iter_used_cuda_graph"] == "True"),
        }

    assert check(*read(data_dir, "failures/dell_rgat_h200_healthy_sibling.txt"), oracle) >= 4_800


def test_small_loops_equal_a_reading_by_hand(data_dir: Path) -> None:
    def llmc(line: str) -> dict[str, Any] | None:
        found = re.fullmatch(r"s:(\d+) trl:(\S+) lr:(\S+) norm:(\S+)", line)
        if not found:
            return None
        loss, rate, norm = map(float, found.groups()[1:])
        return {
            "iteration": int(found[1]),
            "train_loss": loss,
            "learning_rate": rate,
            "grad_norm": norm,
        }

    def mxnet(line: str) -> dict[str, Any] | None:
        found = re.search(r"Epoch\[(\d+)\] Batch \[\d+-(\d+)\]\tSpeed: (\S+) samples/sec\t", line)
        if not found:
            return None
        return {
            "epoch": int(found[1]),
            "batch": int(found[2]),
            "samples_per_second": float(found[3]),
            "accuracy": float(line.rpartition("=")[2]),
        }

    name = "nanogpt/track_1_short__2024-10-13_llmc__main.log"
    assert check(*read(data_dir, name), llmc) >= 19_000
    assert check(*read(data_dir, "text/dell_resnet_mxnet_accuracy_nan.txt"), mxnet) >= 2_800


def test_the_programs_own_source_in_a_log_gives_no_metric(data_dir: Path) -> None:
    name = "nanogpt/track_1_short__2024-10-10_Muon__eb5659d0-fb6a-49e5-a311-f1f89412f726.txt"
    lines, found = read(data_dir, name)
    metrics = {"train_loss", "val_loss", "step_avg_ms", "iteration", "loss"}
    claimed = [line for line, pairs in zip(lines, found, strict=True) if metrics & set(pairs)]
    assert [line for line in claimed if not re.match(r"step:\d+/\d+ ", line)] == []


def test_templates_hide_nothing_in_real_logs(corpus: list[list[str]]) -> None:
    for lines in corpus:
        part = lines[:3000]
        with_templates, without = evaluate(RULES, part), evaluate(RULES, part, catch_all=True)
        assert with_templates.matched == without.matched
