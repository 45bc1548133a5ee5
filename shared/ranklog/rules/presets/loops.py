"""Small training loops: the nanoGPT family, Paddle's, MXNet's, GNMT's, straggler reports."""

from __future__ import annotations

from ranklog.rules.presets.number import floats, ints, num
from ranklog.rules.rule import Pairs, Rule

RULES = (
    Rule(
        "modded_nanogpt",
        ("step:", " train_time:", " step_avg:"),
        rf"^step:(?P<iteration>\d+)/(?P<total>\d+)"
        rf"(?: train_loss:{num('train_loss')}| val_loss:{num('val_loss')})?"
        rf" train_time:(?P<train_time_ms>[\d.]+(?:ms|s)) step_avg:{num('step_avg_ms')}ms",
        ints("iteration", "total")
        | floats("train_loss", "val_loss", "step_avg_ms")
        | {"train_time_ms": "duration:ms"},
    ),
    Rule(
        "llmc",
        ("s:", ":"),
        rf"^s:(?P<iteration>\d+) (?:trl:{num('train_loss')}"
        rf"(?: lr:{num('learning_rate')} norm:{num('grad_norm')})?|tel:{num('val_loss')}"
        rf"|eval:{num('accuracy')})\s*$",
        ints("iteration")
        | floats("train_loss", "learning_rate", "grad_norm", "val_loss", "accuracy"),
        gate=r"^s:\x00 (?:trl|tel|eval):",
    ),
    # llm.c's console; z-scores stand behind loss and norm
    Rule(
        "llmc_console",
        ("step ", " | loss ", "| norm ", "| lr "),
        rf"^step +(?P<iteration>\d+)/(?P<total>\d+) \| loss {num('loss')} .*?\| norm {num('grad_norm')} "
        rf".*?\| lr {num('learning_rate')} \| {num('dt_ms')} ms "
        rf".*?\| {num('tokens_s')} tok/s",
        ints("iteration", "total")
        | floats("loss", "grad_norm", "learning_rate", "dt_ms", "tokens_s"),
    ),
    Rule(
        "nanogpt_iter",
        ("iter ", ": loss ", ", time "),
        rf"^iter (?P<iteration>\d+): loss {num('loss')}, time {num('dt_ms')}ms"
        r"(?:, mfu (?P<mfu>-?[\d.]+%))?",
        ints("iteration") | floats("loss", "dt_ms") | {"mfu": "percent"},
    ),
    Rule(
        "nanogpt_eval",
        ("step ", ": train loss ", ", val loss "),
        rf"^step (?P<iteration>\d+): train loss {num('train_loss')}, val loss {num('val_loss')}",
        ints("iteration") | floats("train_loss", "val_loss"),
    ),
    Rule(
        "nanochat",
        ("step ", "| loss: "),
        r"^step +(?P<iteration>\d+)(?:/(?P<total>\d+))?(?: \([\d.]+%\))? (?P<pairs>\|.*)",
        ints("iteration", "total"),
        Pairs(
            # build-nanogpt writes `lr 6e-4` without a colon
            marker=r"\|\s*(lr|[A-Za-z_][\w/ ]*:) +",
            names={"dt:": "dt_ms"},
            types={"dt_ms": "duration:ms", "total_time": "duration"},
        ),
    ),
    Rule(
        "paddle_epoch",
        ("Epoch: [", "], step: [", "batch_loss: "),
        rf"Epoch: \[(?P<epoch>\d+)\], step: \[(?P<iteration>\d+)\], lr: {num('learning_rate')}, "
        rf"batch_loss: {num('batch_loss')}, avg_loss: {num('avg_loss')}",
        ints("epoch", "iteration") | floats("learning_rate", "batch_loss", "avg_loss"),
    ),
    Rule(
        "paddleseg",
        ("[TRAIN] epoch: ", ", iter: "),
        r"\[TRAIN\] epoch: (?P<epoch>\d+), iter: (?P<iteration>\d+)/(?P<total>\d+), "
        r"(?P<pairs>[^|]*)(?:\| ETA (?P<eta_s>[\d:]+))?",
        ints("epoch", "iteration", "total") | {"eta_s": "duration"},
        Pairs("commas"),
    ),
    Rule(
        "paddleocr",
        ("] ", " INFO: ", ":"),
        r"^\[\d+/\d+/\d+ [\d:]+\] [\w.]+ INFO: (?:epoch: \[(?P<epoch>\d+)/\d+\], )?"
        r"(?P<pairs>(?:global_step|iter|acc|loss|lr):.*)",
        ints("epoch"),
        pairs=Pairs(
            marker=r"(?:^|, )\s*([A-Za-z_]\w*):\s*",
            names={"global_step": "iteration"},
        ),
    ),
    Rule(
        "paddle_nccl",
        ("init nccl context nranks: ",),
        r"nranks: (?P<nccl_nranks>\d+) local rank: (?P<nccl_local_rank>\d+) "
        r"gpu id: (?P<gpu_id>\d+) ring id: (?P<ring_id>\d+)",
        ints("nccl_nranks", "nccl_local_rank", "gpu_id", "ring_id"),
    ),
    Rule(
        "paddle_aborted",
        ("*** Aborted at ", " (unix time)"),
        r"\*\*\* Aborted at (?P<aborted_at>\d+) \(unix time\)",
        ints("aborted_at"),
    ),
    Rule(
        "mxnet_batch",
        ("Epoch[", "] Batch ["),
        r"Epoch\[(?P<epoch>\d+)\] Batch \[(?:\d+-)?(?P<batch>\d+)\]\s+(?P<pairs>.*)",
        ints("epoch", "batch"),
        Pairs("tabs", names={"speed": "samples_per_second"}),
    ),
    Rule(
        "mxnet_epoch",
        ("Epoch[", "] ", "="),
        r"Epoch\[(?P<epoch>\d+)\] (?P<pairs>(?:Time cost|Train-|Validation-)[^=]*=.*)",
        ints("epoch"),
        Pairs("line", names={"time cost": "time_cost_s"}),
    ),
    Rule(
        "gnmt",
        ("[", "]\tTime ", "\tLoss/tok "),
        r"(?P<split>TRAIN|VALIDATION) \[(?P<epoch>\d+)\]\[(?P<batch>\d+)/(?P<total>\d+)\]"
        r"(?P<pairs>\t.*)",
        ints("epoch", "batch", "total"),
        Pairs(marker=r"\t([A-Za-z][\w/]*) ", names={"data": "data_s"}),
    ),
    Rule(
        "straggler_report",
        ("Straggler Report at Step ",),
        r"Straggler Report at Step (?P<iteration>\d+)",
        ints("iteration"),
    ),
    Rule(
        "straggler_summary",
        ("Min: ", ", Slowdown: "),
        r"Min: (?P<straggler_min_ms>[\d.]+ms), Max: (?P<straggler_max_ms>[\d.]+ms), "
        rf"Avg: (?P<straggler_avg_ms>[\d.]+ms), Slowdown: {num('slowdown')}x",
        floats("slowdown")
        | dict.fromkeys(
            ["straggler_min_ms", "straggler_max_ms", "straggler_avg_ms"], "duration:ms"
        ),
    ),
    Rule(
        "straggler_rank",
        ("Rank ", ": "),
        r"^Rank (?P<straggler_rank>\d+): (?P<straggler_ms>\d+(?:\.\d+)?ms)\s*$",
        ints("straggler_rank") | {"straggler_ms": "duration:ms"},
        gate=r"^Rank \x00: \x00(?:\.\x00)?\s*$",
    ),
)
