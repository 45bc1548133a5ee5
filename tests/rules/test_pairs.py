"""Lists of pairs, in every style that writers use."""

from __future__ import annotations

import pytest

from ranklog.rules.rule import Pairs, Rule
from ranklog.rules.ruleset import RuleSet
from tests.rules.applying import extracted

CASES = [
    ("bars", "lm loss: 1.5 | a: b: 2 |", {"lm_loss": 1.5, "a_b": 2}),
    ("bars", " train_acc : 0.7 % | flag : True ", {"train_acc": 0.7, "flag": 1}),
    ("bars", "grad norm: nan | x: N/A | y:   - |", {"grad_norm": "nan"}),
    (
        "bars_blank",
        "| loss 2446.0 | ppl 1 | clip 100%",
        {"loss": 2446.0, "ppl": 1.0, "clip": 100.0},
    ),
    ("equals", "a=1, lr=[1e-05, 2e-05], b=x", {"a": 1, "learning_rate": 1e-05, "b": "x"}),
    ("equals", "tgs (tokens/gpu/second)=9.5 a=(1, 2) b=q w", {"tokens_s": 9.5, "a": 1, "b": "q w"}),
    (
        "commas",
        "seconds: 0.4,  loss: 1, live slice count: 2",
        {"seconds": 0.4, "loss": 1.0, "live_slice_count": 2},
    ),
    (
        "dict",
        "{'loss': 1, 'note': 'a, b', 'epoch': 0.5}",
        {"loss": 1.0, "note": "a, b", "epoch": 0.5},
    ),
    (
        "json",
        '{"a": "1", "in": {"b": 2.5, "c": null}, "d": [3, 4]}',
        {"a": 1, "b": 2.5, "d": 3.0},
    ),
    (
        "spaces",
        "eta: 0:48:44  iter: 5  loss: 1.4 (2.3)",
        {"eta": 2924.0, "iteration": 5, "loss": 1.4, "loss_avg": 2.3},
    ),
    (
        "tabs",
        "Speed: 1.5 samples/sec\taccuracy=nan\tn=3",
        {"speed": 1.5, "accuracy": "nan", "n": 3},
    ),
    ("line", "   train_samples    =   1000", {"train_samples": 1000}),
    ("line", "Train-accuracy=0.5", {"train_accuracy": 0.5}),
    ("equals", "no pairs here", {}),
    ("equals", "", {}),
    ("equals", "a=1\x1fb=2", {"a": 1}),
    ("equals", "=1 ==2", {}),
]


@pytest.mark.parametrize(("style", "text", "expected"), CASES)
def test_a_list_is_read_in_its_style(style: str, text: str, expected) -> None:
    rule = Rule("r", ("> ",), r"^> (?P<pairs>.*)$", pairs=Pairs(style))
    found = extracted(RuleSet([rule]), [f"> {text}", "> ", text])
    assert [{k: "nan" if v != v else v for k, v in line.items()} for line in found] == [
        expected,
        {},
        {},
    ]


def test_names_types_drops_and_suffix_are_the_rules_own() -> None:
    pairs = Pairs(
        "equals",
        names={"x y": "z", "q": "step"},
        types={"n_ms": "str"},
        drop=frozenset(["d"]),
        suffix="_ms",
    )
    rule = Rule(
        "r",
        ("> ",),
        r"^> (?P<list>.*)$",
        pairs=Pairs(
            **{f: getattr(pairs, f) for f in ("style", "names", "types", "drop", "suffix")},
            group="list",
        ),
    )
    assert extracted(RuleSet([rule]), ["> q=3 n=4 d=5 e=6"]) == [
        {"iteration": 3, "n_ms": "4", "e_ms": 6}
    ]


def test_a_marker_of_the_users_own_splits_a_list() -> None:
    rule = Rule("r", ("> ",), r"^> (?P<pairs>.*)$", pairs=Pairs(marker=r"<(\w+)>"))
    assert extracted(RuleSet([rule]), ["> <a>1<b>x;<c>"]) == [{"a": 1, "b": "x"}]


def test_a_key_that_is_there_twice_keeps_its_first_value() -> None:
    rule = Rule("r", ("> ",), r"^> (?P<pairs>.*)$", pairs=Pairs("equals"))
    assert extracted(RuleSet([rule]), ["> a=1 a=2", "> a=q a=2 a=3.5"]) == [{"a": 1}, {"a": "q"}]
