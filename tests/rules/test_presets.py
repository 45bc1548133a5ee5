"""Presets read what the known formats say, typed, and are sound rules themselves."""

from __future__ import annotations

import math

import pytest
import re2

from ranklog.rules.names import BUILT_IN
from ranklog.rules.presets import PRESETS
from ranklog.rules.rule import STYLES, validate
from ranklog.rules.ruleset import RuleSet
from tests.rules.applying import evaluate, extracted
from tests.rules.preset_cases import CASES

RULES = RuleSet.load()
ALL = [rule for family in PRESETS.values() for rule in family]


def typed(found: dict[str, int | float | str]) -> dict[str, tuple[str, str]]:
    return {k: (type(v).__name__, "nan" if v != v else repr(v)) for k, v in found.items()}


@pytest.mark.parametrize(("line", "expected"), CASES, ids=[c[0][:40] for c in CASES])
def test_a_line_gives_the_pairs_that_its_format_says(line: str, expected) -> None:
    assert typed(extracted(RULES, [line])[0]) == typed(expected)


def test_lines_together_give_what_they_give_alone() -> None:
    together = extracted(RULES, [line for line, _ in CASES])
    assert [typed(found) for found in together] == [typed(expected) for _, expected in CASES]


def test_a_line_whose_template_says_nothing_gives_the_same() -> None:
    doubtful = extracted(RULES, [line for line, _ in CASES], catch_all=True)
    assert [typed(found) for found in doubtful] == [typed(expected) for _, expected in CASES]


@pytest.mark.parametrize("rule", ALL, ids=lambda rule: rule.name)
def test_a_preset_is_a_valid_rule_of_re2(rule) -> None:
    validate(rule)
    re2.compile(rule.pattern)


@pytest.mark.parametrize("style", STYLES)
def test_the_marker_of_a_style_has_one_group(style: str) -> None:
    assert re2.compile(STYLES[style].marker).groups == 1


def test_names_of_presets_are_distinct() -> None:
    names = [rule.name for rule in ALL]
    assert sorted(set(names)) == sorted(names)


def test_every_preset_is_shown_by_a_line_of_the_table() -> None:
    shown = evaluate(RULES, [line for line, _ in CASES]).matched
    assert sorted({rule.name for rule in ALL} - set(shown)) == []


def test_no_value_is_filed_under_a_field_of_the_line() -> None:
    keys = {key for _, expected in CASES for key in expected}
    assert keys & BUILT_IN == set()


def test_a_line_without_metrics_costs_no_value() -> None:
    lines = [
        "",
        " ",
        "\r",
        "loading",
        "x" * 100_000,
        "=" * 80,
        "\x1b[0m",
        "日本語 iteration",
        "a\x00b: 1",
    ]
    assert extracted(RULES, lines) == [{}] * len(lines)


def test_infinities_and_nan_are_values() -> None:
    line = "completed step: 3, loss: -inf, lm_loss: Infinity, perplexity: NaN"
    found = extracted(RULES, [line])[0]
    assert found["loss"] == -math.inf and found["lm_loss"] == math.inf
    assert math.isnan(float(found["perplexity"]))
