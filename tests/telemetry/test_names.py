"""Names of series: every number that a preset reads is a series with a row, or known to be none."""

from __future__ import annotations

import pytest

from ranklog.rules.names import stable_name
from ranklog.telemetry.metrics import METRICS, NO_SERIES
from ranklog.telemetry.names import (
    BY_NAME,
    aliases_among,
    better_of,
    folded,
    is_metric,
    is_series_key,
    known,
    names_of,
    unit_of,
)
from tests.rules.preset_cases import CASES
from tests.telemetry.render_docs import PAGE, TABLE_MARK, render

# A job's own names inside a preset's list: a data set's loss.
OWN = {"loss/cn"}


def preset_keys() -> set[str]:
    """Keys under which presets give numbers."""
    return {
        key for _, keys in CASES for key, value in keys.items() if isinstance(value, (int, float))
    }


def test_every_number_of_a_preset_is_a_series_with_a_row_or_none() -> None:
    unknown = {key for key in preset_keys() if not is_metric(key) and is_series_key(key)}
    assert unknown == OWN


def test_a_line_that_says_two_things_of_one_series_has_an_order_of_them() -> None:
    for text, keys in CASES:
        places = [
            (known(key).series, known(key).place)
            for key, value in keys.items()
            if isinstance(value, (int, float))
        ]
        assert len(places) == len(set(places)), text


def test_nothing_is_both_a_series_and_none() -> None:
    assert {key for key in NO_SERIES if is_metric(key)} == set()


def test_an_alias_is_of_one_series_and_folded() -> None:
    words = [word.partition("*")[0] for row in METRICS for word in (row[0], *row[5].split())]
    assert len(words) == len(set(words))
    assert [word for word in words if folded(word) != word] == []


@pytest.mark.parametrize(
    ("framework", "written", "series", "factor"),
    [
        ("Megatron", "lm loss", "loss", 1),
        ("Megatron", "grad norm", "grad_norm", 1),
        ("Megatron", "elapsed time per iteration (ms)", "iteration_time_ms", 1),
        ("Megatron-DeepSpeed", "elapsed time per iteration (s)", "iteration_time_ms", 1000),
        ("Megatron", "throughput per GPU (TFLOP/s/GPU)", "tflops_per_device", 1),
        ("Megatron's TensorBoard", "params-norm", "params_norm", 1),
        ("Primus", "tokens per GPU (tokens/s/GPU)", "tokens_per_s", 1),
        ("TorchTitan", "tps", "tokens_per_s", 1),
        ("TorchTitan", "loss_metrics/global_avg_loss", "loss", 1),
        ("TorchTitan", "time_metrics/data_loading(s)", "data_time_ms", 1000),
        ("HF Trainer", "learning_rate", "learning_rate", 1),
        ("HF Trainer", "eval_loss", "validation_loss", 1),
        ("Lightning", "train_loss_step", "loss", 1),
        ("NeMo", "reduced_train_loss", "loss", 1),
        ("NeMo", "train_step_timing in s", "iteration_time_ms", 1000),
        ("MaxText", "perf/step_time_seconds", "iteration_time_ms", 1000),
        ("MaxText", "learning/current_learning_rate", "learning_rate", 1),
        ("DeepSpeed", "Train/Samples/train_loss", "loss", 1),
        ("nanoGPT", "mfu", "mfu_percent", 1),
        ("OLMo", "train/CrossEntropyLoss", "loss", 1),
        ("a user", "reward/mean", "reward/mean", 1),
    ],
)
def test_a_writers_name_is_the_stable_series(
    framework: str, written: str, series: str, factor: float
) -> None:
    assert (known(written).series, known(written).factor) == (series, factor)


@pytest.mark.parametrize("key", sorted(preset_keys() - NO_SERIES))
def test_rules_and_series_agree_on_a_name(key: str) -> None:
    assert known(stable_name(key) or key).series == known(key).series


def test_a_series_is_found_by_every_name_of_it() -> None:
    assert names_of("lm loss") == ("loss", "lm loss", "lm_loss")
    assert aliases_among("loss", ["lm_loss", "lr", "train_loss", "val_loss"]) == [
        "lm_loss",
        "train_loss",
    ]


def test_a_unit_is_that_of_the_row_or_of_the_names_ending() -> None:
    assert [unit_of(name) for name in ("iteration_time_ms", "loss", "embed_ms", "ms", "x")] == [
        "ms", "", "ms", "", "",
    ]  # fmt: skip


def test_a_loss_is_better_smaller_and_a_rate_larger() -> None:
    assert [better_of(n) for n in ("loss", "tokens_per_s", "grad_norm", "own")] == [-1, 1, 0, 0]


def test_the_page_lists_every_series() -> None:
    assert PAGE.read_text(encoding="utf-8").partition(TABLE_MARK)[2] == render()
    assert all(f"| `{name}` |" in render() for name in BY_NAME)
