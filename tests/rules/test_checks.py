"""The report shows what rules make of sample lines, and which lines they miss."""

from __future__ import annotations

from ranklog.rules.checks import check
from ranklog.rules.rule import Pairs, Rule

LOSS = Rule(
    "loss",
    ("loss: ",),
    r"loss: (?P<loss>\S+)",
    {"loss": "float"},
    run="other",
    examples=("loss: 2.5",),
)
LIST = Rule("list", ("[kv] ",), r"\[kv\] (?P<pairs>.*)", pairs=Pairs("equals"))


def test_lines_show_the_rules_and_the_typed_values() -> None:
    report = check([LOSS, LIST], ["[kv] a=1 b=x", "nothing", "loss: 2.5 [kv] step=3"])
    assert report.to_json() == {
        "rules": 2,
        "lines": [
            {"text": "[kv] a=1 b=x", "rules": ["list"], "values": {"int:a": 1, "str:b": "x"}},
            {"text": "nothing", "rules": [], "values": {}},
            {
                "text": "loss: 2.5 [kv] step=3",
                "rules": ["loss", "list"],
                "values": {"float:loss": 2.5, "int:iteration": 3},
            },
        ],
        "unused": [],
        "hidden": {},
        "failed": {},
    }


def test_without_lines_the_rules_own_examples_are_tried() -> None:
    report = check([LOSS, LIST])
    assert [line.text for line in report.lines] == ["loss: 2.5"]
    assert report.unused == ["list"]


def test_a_line_that_the_literals_hide_is_told() -> None:
    rule = Rule("r", ("Loss: ",), r"(?i)loss: (?P<loss>\S+)", {"loss": "float"})
    assert check([rule], ["Loss: 1", "loss: 2"]).hidden == {"r": 1}
    assert check([rule], []).lines == []
