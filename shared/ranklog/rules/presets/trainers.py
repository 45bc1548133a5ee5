"""Trainers and frameworks: NeMo, Hugging Face, TorchTitan, MaxText, OLMo, Composer, InternEvo, fairseq."""

from __future__ import annotations

from ranklog.rules.presets.number import NUM, floats, ints, num
from ranklog.rules.rule import Pairs, Rule

_TITAN = (
    # forks put numbers of their own between
    rf"loss: *{num('loss')}(?:(?: +\w+: +\S+)*? +grad_norm: *{num('grad_norm')})?"
    r"(?: +\w+: +\S+)*? +memory: *(?P<memory_gib>[\d.]+)GiB\((?P<memory_pct>\d+(?:\.\d+)?)%\)"
    # the first versions call the same number wps
    r" +(?:tps|wps): *(?P<tps>[\d,]+)"
    r"(?: +tflops: *(?P<tflops>[\d,.]+))?(?: +mfu: *(?P<mfu>[\d.]+%|N/A))?"
)
# Colour codes run into the words, so that only `36GiB(45.35%)` is left to tell the line by.
_TITAN_GATE = r"\x00\(\x00(?:\.\x00)?%\)"
_TITAN_TYPES = floats("grad_norm", "memory_gib", "memory_pct", "tflops") | {"mfu": "percent"}
# The last piece of a bar that was drawn over and over, with carriage returns or nothing between.
_BAR = (
    r"^(?:.*[\r\]|])?(?:(?P<bar_name>[^|\r%]*?[^|\r% :]):? +|\s*)(?P<bar_percent>\d+)%\|[^|\r]*\| *"
    r"(?P<bar_at>[\d.]+[kMG]?)/(?P<bar_total>[\d.]+[kMG]?) "
    r"\[(?P<bar_elapsed_s>[\d:]+)<(?P<bar_eta_s>[\d:?]+), *"
    r"(?P<bar_rate>\?|[\d.]+(?:s/it|it/s)?)(?P<bar_unit>[^,\]\r]*)(?:, (?P<pairs>[^\]\r]*))?\]"
)

RULES = (
    Rule(
        "nemo_metrics",
        ("Training epoch ", ", iteration "),
        r"Training epoch (?P<epoch>\d+), iteration (?P<iteration>\d+)/(?P<total>\d+) \|(?P<pairs>.*)",
        ints("epoch", "iteration", "total"),
        Pairs("bars", types=ints("global_step") | floats("train_step_timing")),
    ),
    Rule(
        "python_dict",
        ("{'", "': "),
        r"(?:^|[\r \]])(?P<pairs>\{'(?:eval_|train_|(?:loss|training_steps|global_steps|grad_norm)')"
        r"[^{}]*\})\s*$",
        pairs=Pairs("dict", drop=frozenset(["timestamp"])),
        gate=r"\{'(?:eval_|train_|(?:loss|training_steps|global_steps|grad_norm)')",
    ),
    Rule(
        "hf_summary",
        (" >>   ", " = "),
        r" >> +(?P<pairs>[A-Za-z]\w* += +\S[^=]*)$",
        pairs=Pairs("line"),
    ),
    Rule(
        "tqdm",
        ("%|", "| ", "<"),
        _BAR,
        ints("bar_percent")
        | {"bar_at": "number", "bar_total": "number", "bar_rate": "rate"}
        | {"bar_elapsed_s": "duration", "bar_eta_s": "duration"},
        Pairs("equals"),
    ),
    Rule(
        "torchtune",
        ("|Loss: ",),
        rf"(?:^|\r)(?P<epoch>\d+)\|(?P<iteration>\d+)\|Loss: {num('loss')}",
        ints("epoch", "iteration") | floats("loss"),
    ),
    Rule(
        "torchtitan_validate",
        ("validate step: ", "loss: ", "memory: "),
        rf"validate step: *(?P<iteration>\d+) +{_TITAN.replace('<loss>', '<val_loss>')}",
        ints("iteration", "tps") | floats("val_loss") | _TITAN_TYPES,
        gate=_TITAN_GATE,
        ansi=True,
    ),
    Rule(
        "torchtitan_step",
        ("step: ", "loss: ", "memory: ", "ps: "),
        rf"(?:^|- *)step: *(?P<iteration>\d+) +{_TITAN}",
        ints("iteration", "tps") | floats("loss") | _TITAN_TYPES,
        gate=_TITAN_GATE,
        ansi=True,
    ),
    Rule(
        "maxtext",
        ("completed step: ", ", "),
        r"completed step: (?P<iteration>\d+),(?P<pairs>.*)",
        ints("iteration"),
        Pairs("commas"),
    ),
    Rule(
        "olmo_step",
        ("[step=",),
        r"\[step=(?P<iteration>\d+(?:,\d{3})*)(?:/(?P<total>\d+(?:,\d{3})*))?(?:,epoch=(?P<epoch>\d+))?",
        ints("iteration", "total", "epoch"),
    ),
    Rule(
        "olmo_metric",
        ("/", "="),
        r"^ {3,4}(?P<pairs>[A-Za-z][\w ().-]*/[\w ()/.-]*=[^=]*)$",
        pairs=Pairs("line"),
        gate=r"^ {3,4}[A-Za-z\x00][^=|]*/[^=|]*=[^=]*$",
    ),
    Rule(
        "composer_batch",
        ("]",),
        r"^\[(?:epoch=(?P<epoch>\d+)\]\[)?(?:batch|ba)=(?P<iteration>\d+)(?:/(?P<total>\d+))?\]",
        ints("epoch", "iteration", "total"),
        gate=r"^\[(?:epoch=\x00\]\[)?(?:batch|ba)=\x00",
    ),
    Rule(
        "composer_metric",
        (": ",),
        r"^\s+(?P<pairs>(?:Train|Eval) \S.*: .*)$",
        pairs=Pairs(marker=r"^(?:Train|Eval) (.*): "),
        gate=r"^\s+(?:Train|Eval) \S.*: ",
    ),
    Rule(
        "internevo_grad_norm",
        ("] - pid=", "grad_norm={'"),
        rf"grad_norm=\{{'[^']*': {num('grad_norm')}",
        floats("grad_norm"),
    ),
    Rule(
        "internevo",
        ("] - pid=", " tflops="),
        r"- pid=(?P<pid>\d+) : (?P<pairs>tflops=.*)",
        ints("pid"),
        Pairs("equals", drop=frozenset(["grad_norm", "param_norm"])),
    ),
    Rule(
        "fairseq",
        ("epoch ", " num_updates "),
        r"(?P<pairs>(?:^|\| )epoch .* num_updates .*)",
        pairs=Pairs("bars_blank", types=ints("epoch")),
    ),
    Rule(
        "fairseq_json",
        (" | INFO | ", '{"epoch": '),
        r"\| (?P<fairseq_log>train_inner|train|valid) \| (?P<pairs>\{.*\})",
        pairs=Pairs("json"),
    ),
    Rule(
        "fairseq_overflow",
        ("gradient overflow detected", " setting loss scale to: "),
        rf"setting loss scale to: (?P<loss_scale>{NUM})",
        floats("loss_scale"),
    ),
    Rule(
        "ezpz",
        ("][", "="),
        r"^\[\d+-\d+-\d+ [^\]]*\]\[[A-Z]+\]\[[^\]]*\] (?P<pairs>(?:epoch|iter|step|train_iter)=.*)",
        pairs=Pairs("equals", names={"train_iter": "iteration"}),
        gate=r"^\[\x00-\x00-\x00 [^\]]*\]\[[A-Z]+\]\[[^\]]*\] (?:epoch|iter|step|train_iter)=",
    ),
    Rule(
        "ezpz_rank",
        ("][device='", "][rank="),
        r"\[device='(?P<device>\w+)'\]\[node=(?P<node>\d+)/\d+\]\[rank=(?P<global_rank>\d+)/",
        ints("node", "global_rank"),
    ),
)
