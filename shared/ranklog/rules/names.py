"""Stable names of metrics: one spelling per meaning, whatever the writer calls it.

A name is looked up in STABLE (folded to lower case, blanks squeezed). What is not there becomes
lower snake: words split at case changes, every other character but `/` and `.` becomes `_`.
"""

from __future__ import annotations

import re
from types import MappingProxyType

# Fields of a line that are no metadata: a rule can't write them, a key of a list gets a suffix.
BUILT_IN = frozenset(
    """
    run attempt rank local_rank host stream channel level call_site template logger function group
    time series source id copy kind
    """.split()
)
# The line's own iteration; `step` is the same word.
ITERATION = frozenset(["iteration", "step"])
KEY_LENGTH_MAX = 100

# What writers print -> the stable name.
STABLE = MappingProxyType(
    {
        # the loop
        "iter": "iteration",
        "training_steps": "iteration",
        "completed step": "iteration",
        "step": "iteration",
        "num_updates": "iteration",
        "update": "epoch_update",
        "consumed samples": "consumed_samples",
        "consumed tokens": "consumed_tokens",
        "global batch size": "global_batch_size",
        "time": "time_s",
        # losses, norms, schedules
        "lm loss": "lm_loss",
        "lm-loss": "lm_loss",
        "lm loss value": "lm_loss",
        "lm loss ppl": "lm_loss_ppl",
        "train/crossentropyloss": "train/cross_entropy_loss",
        "lr": "learning_rate",
        "learning rate": "learning_rate",
        "grad norm": "grad_norm",
        "gnorm": "grad_norm",
        "norm": "grad_norm",
        "num zeros": "num_zeros",
        "params norm": "params_norm",
        "loss scale": "loss_scale",
        "number of skipped iterations": "skipped",
        "number of nan iterations": "nan",
        # time
        "elapsed time per iteration (ms)": "elapsed_ms",
        "elapsed time per iteration (s)": "elapsed_s",
        "train_step_timing in s": "train_step_timing",
        "iter time (s)": "iter_time_s",
        "step_avg": "step_avg_ms",
        # throughput
        "samples per second": "samples_per_second",
        "samples/sec": "samples_per_second",
        "seq/s": "sequences_per_second",
        "tflop/s/device": "tflops",
        "throughput per gpu (tflop/s/gpu)": "throughput_tflops",
        "throughput (token/sec/gpu)": "tokens_s",
        "tokens per gpu (tokens/s/gpu)": "tokens_s",
        "tokens/s/device": "tokens_s",
        "tok/s": "tokens_s",
        "tok/sec": "tokens_s",
        "tgs (tokens/gpu/second)": "tokens_s",
        "approx flops per gpu": "flops_per_gpu",
        "energy per gpu (j/iter/gpu)": "energy_j",
        "power per gpu (w/gpu)": "power_w",
        "hip mem usage/free/total/usage_ratio": "hip_mem_usage",
        "live slice count": "live_slice_count",
        "loss/tok": "loss_per_token",
        "last_iter_used_cuda_graph": "cuda_graph",
        "max mem": "max_mem",
    }
)

# Numbers whose writers drop the fraction now and then: always float, so that one key is one column.
FLOAT_KEYS = frozenset(
    """
    loss lm_loss train_loss val_loss eval_loss reduced_train_loss average_loss step_loss avg_loss
    batch_loss nll_loss loss_per_token train_acc accuracy acc learning_rate grad_norm loss_scale
    params_norm num_zeros elapsed_ms elapsed_s throughput_tflops tflops energy_j power_w
    samples_per_second tokens_s tps sequences_per_second iteration_time seconds perplexity ppl
    wps ups epoch_update time_s data step_avg_ms train_time_ms dt_ms mfu bf16_mfu iter_time_s
    train_step_timing ips batch_cost reader_cost train_runtime train_samples_per_second
    train_steps_per_second speed
    """.split()
)
# Counters that some writers print as 3.0.
INT_KEYS = frozenset(
    """
    iteration total_iterations consumed_samples consumed_tokens global_batch_size skipped nan
    samples_count micro_step total_weights
    """.split()
)

_CAMEL = re.compile(r"([a-z0-9])([A-Z])")
_OTHER = re.compile(r"[^a-z0-9/.]+")


def stable_name(raw: str) -> str | None:
    """The key for a writer's name; None for what can be no key (empty, too long, no letter)."""
    words = " ".join(raw.split())
    name = STABLE.get(words.lower())
    if name is None:
        name = _OTHER.sub("_", _CAMEL.sub(r"\1_\2", words).lower()).strip("_./")
        name = STABLE.get(name, name)
    if not name or len(name) > KEY_LENGTH_MAX or not any(c.isalpha() for c in name):
        return None
    if not name[0].isalpha():
        name = "n" + name
    return name + "_value" if name in BUILT_IN else name
