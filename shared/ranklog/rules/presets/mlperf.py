"""MLPerf's MLLOG and NVIDIA's DLLogger."""

from __future__ import annotations

from ranklog.rules.presets.number import ints
from ranklog.rules.rule import Pairs, Rule

RULES = (
    # `step` counts iterations only where samples are counted beside it, and not beside a time of
    # validation, whose batches it counts. Alone it may be epochs, samples or tokens.
    Rule(
        "mllog_step",
        (":::MLLOG {", '"value": ', '"step": ', '"samples_count": '),
        r':::MLLOG \{.*"value": (?:[^{]|\{"[^v"]).*"step": (?P<iteration>\d+)(?:\.0)?[,}]',
        ints("iteration"),
    ),
    Rule(
        "mllog",
        (":::MLLOG {",),
        r":::MLLOG (?P<pairs>\{.*\})",
        pairs=Pairs(
            "json",
            # file and lineno are the call site, time_ms the time: the head has them
            drop=frozenset(["namespace", "time_ms", "file", "lineno"]),
            names={"step": "mllog_step", "curr_global_step": "iteration"},
            types=ints("mllog_step") | {"event_type": "str", "key": "str", "tensor": "str"},
        ),
    ),
    Rule(
        "dllogger",
        ("DLL ", " - "),
        r"(?:^|[ :])DLL \d+-\d+-\d+ [\d:.]+ - (?:Iteration (?P<iteration>\d+)|(?P<dll_scope>[^|]*?)) *"
        r"\|(?P<pairs>.*)",
        {"iteration": "int"},
        Pairs(
            "bars",
            types={"iteration_time": "duration:ms", "train_acc": "percent"},
        ),
        gate=r"(?:^|[ :])DLL \x00-\x00-\x00 ",
    ),
    # as its own console backend writes: no bars
    Rule(
        "dllogger_plain",
        ("DLL ", " - ", " : "),
        r"(?:^|[ :])DLL \d+-\d+-\d+ [\d:.]+ - (?:[^|:]*: \d+ )*?"
        r"(?:(?:Training )?Iteration: (?P<iteration>\d+) )?(?P<pairs> *[A-Za-z_]\w* : [^|]*)$",
        ints("iteration"),
        Pairs(marker=r"(?:^| )\s*([A-Za-z_]\w*) : ", types={"loglevel": "str"}),
        gate=r"(?:^|[ :])DLL \x00-\x00-\x00 ",
    ),
)
