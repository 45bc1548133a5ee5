"""The gate never excludes a template of a line that has the literal."""

from __future__ import annotations

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from ranklog.layout.tokens_pure import template_of
from ranklog.limits import TEMPLATE_BYTES_MAX
from ranklog.rules.gate import PLACEHOLDER, Templates, selective, template_pattern
from ranklog.rules.ruleset import RuleSet

PARTS = st.sampled_from(["a", "B", "7", "_", " ", ":", "(", ".", "é", "\\", "|", "loss", "12"])
TEXT = st.lists(PARTS, max_size=8).map("".join)


@given(TEXT, TEXT.filter(bool), TEXT)
def test_a_template_of_a_text_with_the_literal_passes(
    before: str, literal: str, after: str
) -> None:
    template = template_of(before + literal + after)
    assert re2.search(template_pattern(literal), template)


@pytest.mark.parametrize(
    ("literal", "expected"),
    [("loss", False), ("loss: ", True), ("[PG ID ", True), ("12", False), (" ", True)],
)
def test_a_literal_of_one_bare_word_filters_nothing(literal: str, expected: bool) -> None:
    assert selective(literal) is expected


def test_catch_all_and_cut_templates_are_doubt() -> None:
    templates = Templates(["", "loss: \x00", "x" * TEMPLATE_BYTES_MAX, "other"])
    assert templates.doubt.tolist() == [True, False, True, False]
    assert templates.may_match(["loss: "], None).tolist() == [False, True, False, False]
    assert templates.may_match([], r"^o").tolist() == [False, False, False, True]
    assert templates.may_match(["loss: "], r"^o").tolist() == [False] * 4


def test_no_templates_are_no_error() -> None:
    assert Templates([]).may_match(["a: "], None).tolist() == []


def test_no_preset_is_open_to_a_template_of_placeholders_only() -> None:
    z = PLACEHOLDER
    soup = (
        f"{z}-{z}-{z} {z}:{z}:{z},{z} [{z} {z}] {z}/{z}.{z}:{z}: {z} | {z} ({z}) {z}={z}, {z}: {z}"
        f" = {z}; {z}% <{z}> ({z}: {z}) {{{z}}}"
    )
    templates = Templates(["", soup])
    open_to_all = [
        rule.name
        for rule in RuleSet.load().rules
        if templates.may_match(rule.literals, rule.gate)[1]
    ]
    assert open_to_all == []
