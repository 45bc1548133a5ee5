"""docs/rules.md says all there is to say, and its example works."""

from __future__ import annotations

import re

from ranklog.rules.checks import check
from ranklog.rules.load import MEMBERS, PAIR_MEMBERS, load_rules
from ranklog.rules.names import BUILT_IN
from ranklog.rules.rule import STYLES
from ranklog.rules.values import TYPES, UNITS
from tests.rules.render_docs import MARK, PAGE, render

TEXT = PAGE.read_text()


def test_presets_and_names_are_as_the_code_has_them() -> None:
    assert TEXT.partition(MARK)[2] == render(), "run python -m tests.rules.render_docs"


def test_every_member_type_style_and_reserved_name_is_told() -> None:
    words = [*MEMBERS, *PAIR_MEMBERS, *TYPES, *UNITS, *STYLES]
    assert [word for word in words if f"`{word}`" not in TEXT] == []
    reserved = re.search(r"can't be keys: `([^`]*)`", TEXT)
    assert reserved and set(reserved[1].split()) == BUILT_IN


def test_the_example_of_the_page_works() -> None:
    example = re.search(r"^\{\"version\".*?^\$", TEXT, re.S | re.M)
    assert example is not None
    report = check(load_rules(example[0].rstrip("$").encode()))
    assert [line.values for line in report.lines] == [
        {"str:shard": "c4-00012", "int:tokens": 1048576, "float:read_ms": 1250.0}
    ]
