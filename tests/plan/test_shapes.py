"""Where RE2 finds a match in a text, the automaton says that a text of this template might match."""

from __future__ import annotations

import re

import pytest
import re2
from hypothesis import given, settings
from hypothesis import strategies as st

from ranklog.layout.tokens_pure import template_of
from ranklog.plan.re2_parse import Unknown
from ranklog.plan.shapes import Shape


def might(pattern: str, text: str, flags: str = "", envelopes: tuple[str, ...] = ("",)) -> bool:
    return Shape(pattern, flags).might(template_of(text), envelopes)


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (r"\d{5} \w+ \d{5}", "bucket 12345 of 67890 bytes", True),
        (r"\d{5} \w+ \d{5}", "bucket 1 of 2 bytes", True),
        (r"\d{5} \w+ \d{5}", "forward done in 20.56 ms loss=4.1036", False),
        (r"\d{5} \w+ \d{5}", "no number at all", False),
        (r"[A-Z]{4}", "all small", False),
        (r"[A-Z]{4}", "small 1", True),
        (r"a.c", "abc", True),
        (r"a[^x]d", "abc", False),
        (r"^a+$", "bab", True),
        (r"(foo|ba[rz])+!", "foobaz!", True),
        (r"(foo|ba[rz])+!", "foobag!", False),
        (r"é\d", "é1", True),
        (r"é\d", "e1", False),
        (r"x{3,2000}", "xxx", True),
        (r"x{3,}", "xx", False),
        (r"", "anything", True),
        (r"a*", "b", True),
    ],
)
def test_a_template_might_hold_a_match(pattern: str, text: str, expected: bool) -> None:
    assert might(pattern, text) is expected


@pytest.mark.parametrize(
    ("pattern", "longest", "expected"),
    [
        (r"\d{5} \w+ \d{5}", b"\x05\x05", True),
        (r"\d{5} \w+ \d{5}", b"\xff\xff", True),
        (r"\d{5} \w+ \d{5}", b"\x05\x04", False),
        (r"\d{5} \w+ \d{5}", b"\x04\x05", False),
        (r"bucket \d{2,}", b"\x01\x09", False),
        (r"et \d of", b"\x01\x01", True),
        (r"[0-9a-f]{12}", b"\x0b\x0b", False),
        (r"[0-9a-f]{12}", b"\x0c\x01", True),
    ],
)
def test_short_variables_hold_no_long_match(pattern: str, longest: bytes, expected: bool) -> None:
    assert Shape(pattern, "").might("bucket \0 of \0 bytes", ("",), longest) is expected


def test_case_and_what_folds_to_it() -> None:
    assert might("KELVIN=.", "kelvin=x", "i")
    assert might("kelvin=.", "\u212aelvin=x", "i")
    assert not might("KELVIN=.", "kelvin=x")


def test_a_match_may_begin_in_the_envelope() -> None:
    assert Shape(r"\] l..s", "").might("loss", ("[rank \x00] ", ""))
    assert not Shape(r"\] l..s", "").might("loss", ("",))
    assert Shape(r"rank \d", "").might("loss", ("[rank \x00] ",))


@pytest.mark.parametrize("pattern", ["((((((){32}){32}){32}){32}){32})", "((a{30}){30}){2}"])
def test_a_pattern_that_grows_is_not_read(pattern: str) -> None:
    with pytest.raises(Unknown):
        Shape(pattern, "")


PIECES = st.sampled_from(
    [
        "a",
        "b",
        "7",
        " ",
        ".",
        r"\d",
        r"\w",
        r"\s",
        "[ab7]",
        "[^a]",
        r"\b",
        "^",
        "$",
        "é",
        "K",
        r"\pL",
    ]
)


@st.composite
def patterns(draw: st.DrawFn) -> str:
    parts = []
    for piece in draw(st.lists(PIECES, min_size=1, max_size=6)):
        repeat = draw(st.sampled_from(["", "", "", "*", "+", "?", "{2}", "{1,3}", "{2,}"]))
        parts.append(piece + (repeat if piece not in ("^", "$", r"\b") else ""))
    whole = "".join(parts)
    return f"({whole}|{draw(PIECES)}{draw(PIECES)})" if draw(st.booleans()) else whole


TEXTS = st.text(alphabet="ab7K9k .é\u212a", max_size=14)


@settings(max_examples=1_500, deadline=None)
@given(pattern=patterns(), text=TEXTS, head=TEXTS, flags=st.sampled_from(["", "i", "s"]))
def test_what_matches_might_match(pattern: str, text: str, head: str, flags: str) -> None:
    shape = Shape(pattern, flags)
    compiled = re2.compile(f"(?{flags}){pattern}" if flags else pattern)
    variables = [token for token in re.findall("[0-9A-Za-z]+", text) if re.search("[0-9]", token)]
    longest = bytes(len(token) for token in variables)
    if compiled.search(text):
        assert shape.might(template_of(text), ("",))
        assert shape.might(template_of(text), ("",), longest)
    envelope = f"{head} "
    if compiled.search(envelope + text):
        assert shape.might(template_of(text), ("", template_of(envelope)))
        assert shape.might(template_of(text), ("", template_of(envelope)), longest)
