"""Rules add values to rows and do nothing else."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranklog.errors import BadRule
from ranklog.limits import RULE_KEYS_PER_BATCH_MAX, RULE_PAIRS_PER_LINE_MAX
from ranklog.model.stream import Stream
from ranklog.rules.rule import Pairs, Rule
from ranklog.rules.ruleset import RuleSet
from tests.rules.applying import evaluate, extracted
from tests.rules.preset_cases import CASES

PRESETS = RuleSet.load()
LINES = [line for line, _ in CASES]
PAIR = Rule("pair", ("kv: ",), r"kv: (?P<pairs>.*)", pairs=Pairs("equals"))


def plain(found) -> str:
    return repr(sorted(found.items()))


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from(LINES), max_size=12), st.integers(0, 12))
def test_a_batch_cut_in_two_gives_the_same(lines: list[str], at: int) -> None:
    whole = extracted(PRESETS, lines)
    parts = extracted(PRESETS, lines[:at]) + extracted(PRESETS, lines[at:])
    assert list(map(plain, whole)) == list(map(plain, parts))


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(LINES), st.integers(0, 80), st.text(max_size=3), st.integers(0, 80)
        ),
        max_size=5,
    )
)
def test_damaged_lines_are_read_the_same_with_and_without_templates(damage) -> None:
    lines = [line[:at] + insert + line[max(at, cut) :] for line, at, insert, cut in damage]
    lines = [line.replace("\x00", "") for line in lines]
    with_templates = evaluate(PRESETS, lines)
    without = evaluate(PRESETS, lines, catch_all=True)
    assert with_templates.failed == without.failed == {}
    assert with_templates.matched == without.matched


def test_no_rules_and_no_lines_give_no_columns() -> None:
    assert evaluate(RuleSet(()), LINES).columns == []
    assert evaluate(PRESETS, []).columns == []


def test_the_earlier_rule_wins_a_key_and_the_later_fills_the_gaps() -> None:
    rules = RuleSet(
        [
            Rule("first", ("a: ",), r"a: (?P<x>\d+)", {"x": "int"}),
            Rule("second", ("b: ",), r"b: (?P<x>\d+)", {"x": "int"}),
        ]
    )
    assert extracted(rules, ["a: 1 b: 2", "b: 3", "a: 4", ""]) == [{"x": 1}, {"x": 3}, {"x": 4}, {}]


def test_the_earlier_rule_wins_a_key_of_another_type_too() -> None:
    rules = RuleSet(
        [
            Rule("first", ("a: ",), r"a: (?P<x>\S+)", {"x": "number"}),
            Rule("second", ("b: ",), r"b: (?P<x>\S+)"),
        ]
    )
    assert extracted(rules, ["a: 1 b: q", "a: 2.5 b: q", "b: q"]) == [
        {"x": 1},
        {"x": 2.5},
        {"x": "q"},
    ]


def test_step_fills_the_iteration_and_only_with_integers() -> None:
    rules = RuleSet([Rule("s", ("at ",), r"at (?P<step>\S+)", {"step": "int"})])
    assert extracted(rules, ["at 5", "at 6.0", "at x", "at 7.5"]) == [
        {"iteration": 5},
        {"iteration": 6},
        {},
        {},
    ]


def test_an_integer_beyond_64_bit_becomes_a_string() -> None:
    rules = RuleSet([Rule("n", ("n: ",), r"n: (?P<n>\d+)", {"n": "int"})])
    assert extracted(rules, ["n: 9223372036854775807", "n: 9223372036854775808"]) == [
        {"n": 9223372036854775807},
        {"n": "9223372036854775808"},
    ]


def test_custom_rules_stand_before_presets_and_replace_one_of_their_name() -> None:
    mine = Rule("generic_loss", ("loss ",), r"loss (?P<my_loss>\S+)", {"my_loss": "float"})
    found = extracted(RuleSet.load(custom=[mine]), ["iteration 3 loss 2.5"])
    assert found == [{"iteration": 3, "my_loss": 2.5}]


def test_a_custom_rule_does_not_take_a_line_from_the_generic_ones() -> None:
    mine = Rule("w", (" weird ",), r" weird (?P<w>\d+)", {"w": "int"})
    found = extracted(RuleSet.load(custom=[mine]), ["iteration 3 loss 2.5 weird 9"])
    assert found == [{"iteration": 3, "loss": 2.5, "w": 9}]


def test_a_rule_that_fails_is_counted_and_the_others_go_on(monkeypatch) -> None:
    from ranklog.rules import ruleset

    real = ruleset.collect_pairs

    def failing(pairs, rows, texts, into):
        real(pairs, rows, texts, into)
        raise pa.ArrowInvalid("out of luck")

    monkeypatch.setattr(ruleset, "collect_pairs", failing)
    rules = RuleSet([PAIR, Rule("x", ("kv: ",), r"x=(?P<y>\d+)", {"y": "int"})])
    result = evaluate(rules, ["kv: x=1"])
    assert result.failed == {"pair": "ArrowInvalid: out of luck"}
    assert [(c.key, c.values.tolist()) for c in result.columns] == [("y", [1])]


def test_scopes_limit_a_rule_to_runs_and_channels() -> None:
    streams = [
        Stream("t", run, "l", 0, "h", 0, 0, channel, "i")
        for run, channel in [("llama-8b", "stdout"), ("llama-8b", "stderr"), ("gpt", "stdout")]
    ]
    rule = Rule("r", ("a: ",), r"a: (?P<x>\d)", {"x": "int"}, run="llama-*", channel="stdout")
    found = RuleSet([rule]).evaluate(
        pa.array(["a: 1", "a: 2", "a: 3"]),
        np.array([1, 1, 1]),
        ["", "a: \x00"],
        np.array([0, 1, 2]),
        streams,
    )
    columns = found.columns
    assert [(c.key, c.rows.tolist(), c.values.tolist()) for c in columns] == [("x", [0], [1])]


def test_colour_is_taken_out_with_and_without_its_escape() -> None:
    rule = Rule("c", ("loss: ",), r"^loss: (?P<loss>\S+)$", {"loss": "float"}, ansi=True)
    lines = ["\x1b[32mloss: \x1b[1;31m2.5\x1b[0m", "[32mloss: [0m2.5[0m"]
    assert extracted(RuleSet([rule]), lines) == [{"loss": 2.5}] * 2


def test_a_flood_of_keys_is_cut_and_counted() -> None:
    lines = [f"kv: k{i}x=1" for i in range(RULE_KEYS_PER_BATCH_MAX + 10)]
    result = evaluate(RuleSet([PAIR]), lines)
    assert len(result.columns) == RULE_KEYS_PER_BATCH_MAX
    assert result.left_out == {"pair": 10}


def test_a_list_without_end_is_cut() -> None:
    line = "kv: " + " ".join(f"k{i % 300}x={i}" for i in range(1000))
    assert len(extracted(RuleSet([PAIR]), [line])[0]) <= RULE_PAIRS_PER_LINE_MAX


def test_keys_that_are_fields_of_a_line_get_a_suffix() -> None:
    assert extracted(RuleSet([PAIR]), ["kv: rank=3 host=a step=4"]) == [
        {"rank_value": 3, "host_value": "a", "iteration": 4}
    ]


def test_chunks_and_large_strings_are_text_too() -> None:
    rules = RuleSet([Rule("r", ("a: ",), r"a: (?P<x>\w)")])
    for text in (
        pa.chunked_array([["a: b"], ["c"]], pa.string()),
        pa.array(["a: b", "c"], pa.large_string()),
    ):
        (column,) = rules.evaluate(
            text, np.array([1, 2]), ["", "a: b", "c"], np.zeros(2, int), ()
        ).columns
        assert (column.key, column.rows.tolist(), column.values.to_pylist()) == ("x", [0], ["b"])


def test_unknown_families_and_double_names_are_refused() -> None:
    with pytest.raises(BadRule, match="no presets named 'x'"):
        RuleSet.load(presets=["x"])
    with pytest.raises(BadRule, match="two rules are named pair"):
        RuleSet([PAIR, PAIR])
    assert {r.name for r in RuleSet.load(presets=["nccl"]).rules} >= {"nccl_info", "nccl_init"}
