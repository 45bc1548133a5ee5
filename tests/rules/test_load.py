"""A rules file is read, or refused with the reason and the place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ranklog.errors import BadRule, NewerVersion
from ranklog.limits import RULE_FILE_BYTES_MAX, RULE_PATTERN_BYTES_MAX
from ranklog.rules.load import load_rules
from ranklog.rules.rule import Pairs, Rule

BASE = {"name": "a", "literals": ["loss: "], "pattern": r"loss: (?P<x>\d+)"}


def file_of(*rules: object) -> bytes:
    return json.dumps({"version": 1, "rules": rules}).encode()


def test_every_member_is_read(tmp_path: Path) -> None:
    rule = {
        "name": "mine",
        "literals": ["[train] "],
        "pattern": r"\[train\] (?P<list>.*)",
        "types": {},
        "pairs": {
            "style": "equals",
            "group": "list",
            "names": {"l": "loss"},
            "types": {"loss": "float"},
            "drop": ["time"],
            "suffix": "",
        },
        "gate": r"^\[train\]",
        "ansi": True,
        "fallback": False,
        "run": "llama-*",
        "channel": "std*",
        "examples": ["[train] l=1"],
    }
    path = tmp_path / "rules.json"
    path.write_bytes(file_of(rule, BASE))
    mine, base = load_rules(path)
    assert mine == Rule(
        "mine",
        ("[train] ",),
        r"\[train\] (?P<list>.*)",
        {},
        Pairs(
            "equals",
            "list",
            names={"l": "loss"},
            types={"loss": "float"},
            drop=frozenset(["time"]),
        ),
        gate=r"^\[train\]",
        ansi=True,
        run="llama-*",
        channel="std*",
        examples=("[train] l=1",),
    )
    assert base == Rule("a", ("loss: ",), r"loss: (?P<x>\d+)")


REFUSED = [
    ({"pattern": r"loss: (?=x)(?P<x>a)"}, "look-ahead (?= at character 6", "(?="),
    ({"pattern": r"(?!b)(?P<x>a)"}, "look-ahead (?! at character 0", "(?!"),
    ({"pattern": r"(?<=b)(?P<x>a)"}, "look-behind (?<= at character 0", "(?<="),
    ({"pattern": r"(?<!b)(?P<x>a)"}, "look-behind (?<! at character 0", "(?<!"),
    ({"pattern": r"(?P<x>a)\1"}, r"back-reference \1 at character 8", r"\\1"),
    ({"pattern": r"(?P<x>a)(?P=x)"}, "back-reference (?P= at character 8", "(?P="),
    ({"pattern": r"é\d(a)(?P<x>b)"}, "a group without a name at character 3", "(a)"),
    ({"pattern": "loss"}, "no named group", "loss"),
    ({"pattern": "(?P<x>a"}, "RE2 refuses the pattern at character 0: missing )", "(?P<x>a"),
    ({"pattern": "(?P<x>a{1001})"}, "invalid repetition size", "{1001}"),
    ({"pattern": "(?P<x>a)(?P<x>b)"}, "the group x is there twice", "(?P<x>a)"),
    ({"pattern": r"(?P<rank>\d)"}, "rank is a field of every line", "(?P<rank>"),
    ({"pattern": r"(?P<step>\d)"}, "step is the line's iteration and has type int", "(?P<step>"),
    ({"pattern": "(?P<_x>a)"}, "'_x' is no key", "(?P<_x>"),
    ({"pattern": "(?P<x>" + "a" * RULE_PATTERN_BYTES_MAX + ")"}, "at most 4096", "(?P<x>"),
    ({"types": {"x": "integer"}}, "unknown type 'integer' of x", "{"),
    ({"types": {"y": "int"}}, "a type for y, which is no group", "{"),
    ({"literals": []}, "no literal to filter by", "{"),
    ({"literals": [""]}, "no literal to filter by", "{"),
    ({"literals": ["loss"]}, "can stand inside longer words", "{"),
    ({"name": "A b"}, "'A b' is no name of a rule", "{"),
    ({"name": 5}, "'name' must be a string", "{"),
    ({"literals": "loss: "}, "'literals' must be a list of strings", "{"),
    ({"ansi": 1}, "'ansi' must be true or false", "{"),
    ({"types": ["x"]}, "'types' must be an object of strings", "{"),
    ({"regex": "x"}, "unknown member 'regex' of a rule", "{"),
    ({"pairs": {"style": "x", "group": "x"}}, "unknown style 'x' of pairs", "{"),
    ({"pairs": {"group": "y"}}, "read from y, which is no group", "{"),
    ({"pairs": {"group": "x", "marker": "abc"}}, "needs one group: the key", "{"),
    ({"pairs": {"group": "x", "marker": "(a"}}, "marker: RE2 refuses", "{"),
    ({"pairs": {"group": "x", "names": {"a": "rank"}}}, "rank is a field of every line", "{"),
    ({"pairs": {"colour": "x"}}, "unknown member 'colour' of a pairs", "{"),
    ({"gate": "(a"}, "gate: RE2 refuses", "{"),
]


@pytest.mark.parametrize(("change", "reason", "at"), REFUSED)
def test_a_rule_is_refused_with_the_reason_and_the_place(change, reason: str, at: str) -> None:
    data = json.dumps(
        {"version": 1, "rules": [{**BASE, "name": "fine"}, {**BASE, **change}]}, ensure_ascii=False
    )
    with pytest.raises(BadRule) as refused:
        load_rules(data.encode())
    assert reason in refused.value.message
    assert refused.value.position is not None
    assert data.startswith(at, refused.value.position)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"{", "no JSON at line 1, column 2"),
        (b"[]", "a rules file is"),
        (b'{"rules": []}', 'no "version"'),
        (b'{"version": true, "rules": []}', 'no "version"'),
        (b'{"version": 1, "rules": [], "x": 1}', "unknown member 'x'"),
        (b'{"version": 1, "rules": [5]}', "rule is no JSON object"),
        (b'{"version": 1, "rules": [{"name": "a"}]}', "a rule without 'pattern'"),
        (b"\xff", "no UTF-8 at byte 0"),
        (b"[" * 100_000, "nested too deep"),
        (b" " * (RULE_FILE_BYTES_MAX + 1), "at most 262144"),
        (file_of(BASE, BASE), "two rules are named a"),
    ],
)
def test_a_file_that_is_no_rules_file_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(BadRule) as refused:
        load_rules(data)
    assert reason in refused.value.message


def test_a_newer_file_says_so() -> None:
    with pytest.raises(NewerVersion, match="rules of version 2"):
        load_rules(b'{"version": 2, "rules": []}')


def test_a_path_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadRule, match="can't read rules from"):
        load_rules(tmp_path / "none.json")


def test_escaped_look_around_is_plain_text() -> None:
    (rule,) = load_rules(file_of({**BASE, "pattern": r"[(?=]\(?=\\\d(?P<x>a)"}))
    assert rule.keys == ("x",)
