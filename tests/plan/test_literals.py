"""Where RE2 finds a match, the tree holds: the one promise of `required_literals`."""

from __future__ import annotations

import pytest
import re2
from hypothesis import given, settings
from hypothesis import strategies as st

from ranklog.plan.literals import (
    AllOf,
    AnyOf,
    Anything,
    Literal,
    LiteralTree,
    required_literals,
    tree_holds,
)


def lit(text: str, edges: str = "") -> Literal:
    """`edges`: "<" a known token start, ">" a known end, "i" folded."""
    return Literal(text, "i" in edges, "<" in edges, ">" in edges)


@pytest.mark.parametrize(
    ("pattern", "flags", "tree"),
    [
        ("fallen off the bus", "", lit("fallen off the bus")),
        ("a|b", "", AnyOf((lit("a"), lit("b")))),
        ("(foo|bar)baz", "", AnyOf((lit("foobaz"), lit("barbaz")))),
        ("ab?c", "", AnyOf((lit("abc"), lit("ac")))),
        ("a.*b", "", AllOf((lit("a"), lit("b")))),
        ("foo +bar", "", AllOf((lit("foo "), lit(" bar")))),
        (r"loss\s+is", "", AllOf((lit("loss", ">"), lit("is", "<")))),
        (r"step [0-9]+ done", "", AllOf((lit("step "), lit(" done")))),
        (r"\bbus\b", "", lit("bus", "<>")),
        ("^bus$", "", lit("bus", "<>")),
        (r"\Abus\z", "m", lit("bus", "<>")),
        ("a{3}b{2,}", "", AllOf((lit("aaabb"), lit("bb")))),
        ("(ab)+", "", lit("ab")),
        ("(ab)*c", "", lit("c")),
        ("x{0}y", "", lit("y")),
        (r"\x41\x{42}\.\/", "", lit("AB./")),
        ("[ab]c", "", AnyOf((lit("ac"), lit("bc")))),
        ("(?P<name>ab)(?:c)(?<other>d)", "", lit("abcd")),
        ("NCCL", "i", lit("nccl", "i")),
        ("(?i)NCCL", "", lit("nccl", "i")),
        ("straße", "i", AllOf((lit("stra", "i"), lit("e", "i")))),
        ("straße", "", lit("straße")),
        ("[Aa]b", "i", lit("ab", "i")),
        ("a{,2}", "", lit("a{,2}")),
        ("a]}", "", lit("a]}")),
        ("[[:digit:]]xyz", "", lit("xyz")),
        (r"\pLxyz", "", lit("xyz")),
        (r"[^\pL]xyz", "", lit("xyz")),
        ("[ -\U0010ffff]xyz", "", lit("xyz")),
        ("[^0-9A-Za-z]xyz", "", lit("xyz", "<")),
        (r"\Wxyz[^\w]", "", lit("xyz", "<>")),
        (r"\Wxyz", "i", lit("xyz", "i")),
    ],
)
def test_a_pattern_requires(pattern: str, flags: str, tree: LiteralTree) -> None:
    assert required_literals(pattern, flags).tree == tree


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "a*",
        ".",
        "a|",
        "(a|b*)",
        r"\d+",
        "[^a]",
        r"\Qab\E",
        "(?i:a)b",
        "a(?i)b",
        r"\Cab",
        "a**",
        "(" * 70 + "a" + ")" * 70,
    ],
)
def test_what_is_not_known_requires_nothing(pattern: str) -> None:
    assert required_literals(pattern).tree == Anything()


@pytest.mark.parametrize(
    ("pattern", "exact"),
    [
        ("", True),
        ("abc", True),
        ("a|b", True),
        ("ab?c", True),
        ("a{3}", True),
        ("a+", False),
        ("^a", False),
        (r"\ba", False),
        ("a.b", False),
        ("a|b.", False),
        (r"a\B", False),
    ],
)
def test_exact_is_a_pattern_that_is_nothing_but_its_literals(pattern: str, exact: bool) -> None:
    assert required_literals(pattern).exact is exact


ALPHABET = "abkKsS9_ .-é\u212a\u017f日"
CHARACTERS = st.sampled_from(
    [*"abkKsSé\u212a\u017f日9_ -", r"\.", r"\-", r"\x6b", r"\x{17f}", r"\t"]
)
CLASSES = st.sampled_from(
    [
        r"\d",
        r"\w",
        r"\s",
        r"\W",
        r"\S",
        r"\D",
        ".",
        "[ab]",
        "[^ab]",
        "[k-s]",
        "[^k-s]",
        "[a-z9]",
        "[[:alpha:]]",
        "[^[:alpha:]]",
        r"\pL",
        r"\PL",
        r"[^\pL]",
        r"[\W]",
        r"[^\W_]",
        "[]a]",
        "[é-日]",
        "[^é-日]",
        "[a\u212a]",
        "[ -\U0010ffff]",
        "[a-]",
        r"[\.\s]",
        "[ .-]",
        "[^a-zA-Z0-9]",
    ]
)
ANCHORS = st.sampled_from(["^", "$", r"\A", r"\z", r"\b", r"\B"])
REPEATS = st.sampled_from(
    ["*", "+", "?", "{2}", "{1,2}", "{2,}", "{0}", "{0,1}", "+?", "*?", "{,2}"]
)
PATTERNS = st.recursive(
    st.one_of(CHARACTERS, CHARACTERS, CLASSES, ANCHORS),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=4).map("".join),
        st.lists(inner, min_size=2, max_size=3).map("|".join),
        inner.map(lambda p: f"({p})"),
        inner.map(lambda p: f"(?:{p})"),
        inner.map(lambda p: f"(?P<n>{p})"),
        inner.map(lambda p: f"(?i:{p})"),
        st.tuples(inner, REPEATS).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
        st.tuples(CHARACTERS, REPEATS).map("".join),
    ),
    max_leaves=8,
)
TEXTS = st.text(st.sampled_from(ALPHABET), max_size=10)


def compiled(pattern: str, flags: str) -> re2._Regexp | None:
    options = re2.Options()
    options.log_errors = False
    options.never_nl = False
    try:
        return re2.compile(f"(?{flags}){pattern}" if flags else pattern, options)
    except re2.error:
        return None


@settings(max_examples=1500, deadline=None)
@given(PATTERNS, st.sampled_from(["", "i", "ms", "i"]), st.lists(TEXTS, min_size=1, max_size=8))
def test_a_text_that_matches_has_the_literals(pattern: str, flags: str, texts: list[str]) -> None:
    program = compiled(pattern, flags)
    if program is None:
        return
    required = required_literals(pattern, flags)
    for text in texts:
        matches = program.search(text) is not None
        assert not matches or tree_holds(required.tree, text), required
        assert not required.exact or matches == tree_holds(required.tree, text), required


@settings(max_examples=500, deadline=None)
@given(
    st.text(st.sampled_from(r"ab()[]{}|*+?^$\.-,:<>!=PQEdwb1ki é"), max_size=12),
    st.lists(TEXTS, min_size=1, max_size=8),
)
def test_any_text_as_a_pattern_is_sound(pattern: str, texts: list[str]) -> None:
    required = required_literals(pattern)
    program = compiled(pattern, "")
    if program is None:
        return
    for text in texts:
        assert program.search(text) is None or tree_holds(required.tree, text), required
