"""MLPerf's MLLOG and NVIDIA's DLLogger."""

from __future__ import annotations

from ranklog.rules.rule import Pairs, Rule

RULES = (
    Rule(
        "mllog",
        (":::MLLOG {",),
        r":::MLLOG (?P<pairs>\{.*\})",
        pairs=Pairs(
            "json",
            # file and lineno are the call site, time_ms the time: the head has them
            drop=frozenset(["namespace", "time_ms", "file", "lineno"]),
            types={"event_type": "str", "key": "str", "tensor": "str"},
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
)
