"""One spelling per meaning."""

from __future__ import annotations

import pytest

from ranklog.rules.names import BUILT_IN, FLOAT_KEYS, INT_KEYS, STABLE, stable_name


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("lm loss", "lm_loss"),
        ("lm-loss", "lm_loss"),
        ("LM  Loss", "lm_loss"),
        ("elapsed time per iteration (ms)", "elapsed_ms"),
        ("elapsed time per iteration (s)", "elapsed_s"),
        ("number of nan iterations", "nan"),
        ("load_balancing_loss", "load_balancing_loss"),
        ("train/CrossEntropyLoss", "train/cross_entropy_loss"),
        ("System/Peak GPU Memory (MB)", "system/peak_gpu_memory_mb"),
        ("loss/train/total", "loss/train/total"),
        ("TFLOP/s/device", "tflops"),
        ("rank", "rank_value"),
        ("step", "iteration"),
        ("1st", "n1st"),
        ("", None),
        ("123", None),
        ("--", None),
        ("x" * 101, None),
    ],
)
def test_a_writers_name_becomes_a_stable_key(raw: str, name: str | None) -> None:
    assert stable_name(raw) == name


def test_the_table_is_folded_and_names_keys_only() -> None:
    assert all(raw == " ".join(raw.lower().split()) for raw in STABLE)
    assert not set(STABLE.values()) & BUILT_IN
    assert not FLOAT_KEYS & INT_KEYS
