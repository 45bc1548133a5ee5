"""Megatron-LM and what prints its line: Primus, GPT-NeoX, DeepSpeed's fork; DeepSpeed itself."""

from __future__ import annotations

from ranklog.rules.presets.number import NUM, floats, ints, num
from ranklog.rules.rule import Pairs, Rule

_MEMORY = floats("mem_allocated_gb", "max_mem_allocated_gb")

RULES = (
    Rule(
        "megatron_iteration",
        (" elapsed time per iteration (",),
        r"(?:^|[ |\]:])iteration +(?P<iteration>\d+)/ *(?P<total>\d+) \|(?P<pairs>.*)",
        ints("iteration", "total"),
        Pairs("bars"),
        ansi=True,
    ),
    Rule(
        "neox_samples",
        ("samples/sec: ", " elapsed time per iteration ("),
        rf"^ *samples/sec: {num('samples_per_second')} \|",
        floats("samples_per_second"),
    ),
    Rule(
        "megatron_validation",
        (" loss at iteration ", " | "),
        r"(?P<split>validation|test) loss at iteration (?P<iteration>\d+)[^|]*\|(?P<pairs>.*)",
        ints("iteration"),
        Pairs(
            "bars",
            names={"lm loss value": "val_loss", "lm loss ppl": "val_ppl"},
            types=floats("val_loss", "val_ppl"),
        ),
    ),
    Rule(
        "megatron_timers",
        ("time (ms) | ",),
        r"^ *time \(ms\) \|(?P<pairs>.*)",
        pairs=Pairs("bars", suffix="_ms"),
    ),
    Rule(
        "megatron_timer",
        ("....: ",),
        r"^ *(?P<pairs>[a-z][\w-]* \.{4,}: (?:\([\d.]+, )?[\d.]+)\)? *$",
        # of (smallest, largest) over the ranks the largest
        pairs=Pairs(marker=r"([a-z][\w-]*) \.{4,}: (?:\([\d.]+, )?", suffix="_ms"),
    ),
    Rule(
        "megatron_straggler",
        ("MnRtt/Rnk: ", "MxRtt/Rnk: "),
        rf"MnRtt/Rnk: {num('straggler_min_ms')}ms/\d+ \| "
        rf"MxRtt/Rnk: {num('straggler_ms')}ms/(?P<straggler_rank>\d+)",
        ints("straggler_rank") | floats("straggler_min_ms", "straggler_ms"),
    ),
    Rule(
        "megatron_memory",
        (" iterations) memory (MB) | ",),
        r"\(after (?P<iteration>\d+) iterations\) memory \(MB\) \|(?P<pairs>.*)",
        ints("iteration"),
        Pairs("bars", suffix="_mb"),
    ),
    Rule(
        "megatron_rerun",
        ("Unexpected result ", " on rank ", " at iteration #"),
        r"Unexpected result (?P<unexpected_result>\S+) on rank (?P<failed_rank>\d+) "
        r"at iteration #(?P<iteration>\d+)",
        ints("failed_rank", "iteration"),
    ),
    Rule(
        "megatron_nan_grad",
        (": found NaN in local grad norm", " Device: "),
        r"Rank (?P<failed_rank>\d+): found NaN in local grad norm.* Device: (?P<cuda_dev>\d+), "
        r"node: (?P<failed_host>[\w.-]+)",
        ints("failed_rank", "cuda_dev"),
    ),
    Rule(
        "deepspeed_step",
        ("] step=", ", skipped="),
        rf"\] step=(?P<iteration>\d+), skipped=(?P<skipped>\d+), lr=\[{num('learning_rate')}",
        ints("iteration", "skipped") | floats("learning_rate"),
    ),
    Rule(
        "deepspeed_steps",
        ("steps: ", " iter time (s): "),
        rf"^steps: (?P<iteration>\d+) loss: {num('loss')} iter time \(s\): {num('iter_s')} "
        rf"samples/sec: {num('samples_per_second')}",
        ints("iteration") | floats("loss", "iter_s", "samples_per_second"),
    ),
    Rule(
        "deepspeed_throughput",
        ("/micro_step=", "RunningAvgSamplesPerSec="),
        rf"epoch=(?P<epoch>\d+)/micro_step=(?P<micro_step>\d+)/global_step=(?P<iteration>\d+), "
        rf"RunningAvgSamplesPerSec={num('samples_per_second_avg')}, "
        rf"CurrSamplesPerSec={num('samples_per_second')}"
        rf"(?:, MemAllocated={num('mem_allocated_gb')}GB)?"
        rf"(?:, MaxMemAllocated={num('max_mem_allocated_gb')}GB)?",
        ints("epoch", "micro_step", "iteration")
        | floats("samples_per_second_avg", "samples_per_second")
        | _MEMORY,
    ),
    Rule(
        "deepspeed_memory",
        (" Max_MA ", " CA "),
        rf"MA {num('mem_allocated_gb')} GB +Max_MA {num('max_mem_allocated_gb')} GB +"
        rf"CA {num('mem_cached_gb')} GB +Max_CA {num('max_mem_cached_gb')} GB",
        _MEMORY | floats("mem_cached_gb", "max_mem_cached_gb"),
    ),
    Rule(
        "deepspeed_overflow",
        ("OVERFLOW! Rank ", "Attempted loss scale: "),
        rf"OVERFLOW! Rank (?P<overflow_rank>\d+) Skipping step\. "
        rf"Attempted loss scale: {num('attempted_loss_scale')}, reducing to {num('loss_scale')}",
        ints("overflow_rank") | floats("attempted_loss_scale", "loss_scale"),
    ),
    Rule(
        "apex_overflow",
        ("Skipping step, loss scaler ", " reducing loss scale to "),
        rf"loss scaler \d+ reducing loss scale to (?P<loss_scale>{NUM})",
        floats("loss_scale"),
    ),
)
