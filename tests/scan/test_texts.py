"""Texts by Arrow's RE2: the same ones as without a look for a literal first."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranklog.scan.texts import _literal_inside, literal_mask, regex_mask

LETTERS = "ab.\\ \t\0\n-_|é\u212a[("
TEXTS = st.lists(st.text(LETTERS + "k1", max_size=8), min_size=1, max_size=12)
PATTERNS = [
    (r"\bab\b", ""),
    (r"[ab]+-k", ""),
    (r"\d? ?ab.?k", "s"),
    (r".*ab", ""),
    (r"(a|b)k1", "i"),
    (r"^ab|k1$", ""),
    (r"\.\\", ""),
    (r"(?i)\bab", ""),
    (r"[^a]b1|ab1", ""),
    (r"\x00b", ""),
    (r"(?:ab)?", ""),
]


@given(TEXTS, st.text(LETTERS, max_size=4))
@settings(deadline=None, max_examples=300)
def test_a_literal_is_found_where_python_finds_it(texts: list[str], literal: str) -> None:
    found = literal_mask(pa.array(texts, pa.string()), literal)
    assert found.tolist() == [literal in text for text in texts]


@pytest.mark.parametrize(("pattern", "letters"), PATTERNS)
@given(texts=TEXTS, rare=st.booleans())
@settings(deadline=None, max_examples=60)
def test_a_pattern_is_found_where_re2_alone_finds_it(
    pattern: str, letters: str, texts: list[str], rare: bool
) -> None:
    array = pa.array([*texts, *([""] * 40 if rare else [])], pa.string())
    whole = f"(?{letters}){pattern}" if letters else pattern
    wanted = pc.match_substring_regex(array, whole).to_pylist()
    assert regex_mask(array, pattern, letters).tolist() == wanted


def test_a_slice_of_texts_is_taken_by_its_own_places() -> None:
    array = pa.array(["ab", *["x"] * 30, "ab", "xab"], pa.string()).slice(3)
    assert regex_mask(array, r"\bab\b", "").nonzero()[0].tolist() == [28]


@pytest.mark.parametrize(
    ("pattern", "letters", "literal"),
    [
        (r"\b5e0a97\b", "", "5e0a97"),
        (r"\d+ took 1\d ms", "", " took 1"),
        (r"loss=\d+", "", None),
        (r"loss=\d+", "i", None),
        (r"(Xid|fallen)", "", None),
        (r"\w+", "", None),
    ],
)
def test_the_literal_is_one_that_every_match_has_and_re2_does_not_begin_with(
    pattern: str, letters: str, literal: str | None
) -> None:
    assert _literal_inside(pattern, letters) == literal
