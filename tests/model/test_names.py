"""A name of one that does not fit refuses nobody's lines."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ranklog.layout.keys import decode_name, encode_name
from ranklog.limits import NAME_BYTES_MAX
from ranklog.model.names import fitting, printable, printable_names, with_printable_names

ANY = st.text(st.characters(), max_size=300)  # surrogates among them


@given(ANY)
@example("." * 199)
@example("." + "a" * 198)
@example("a" * 10_000)
@example("\ud800" * 100)
def test_every_name_becomes_one_that_a_key_takes_and_stays_so(name: str) -> None:
    short = fitting(name)
    assert decode_name(encode_name(short)) == short
    assert fitting(short) == short


@pytest.mark.parametrize(
    "name", ["llama", "", "ü" * 33, "a" * 198, "lr=1e-4," * 12, "run " * 33, "日" * 22]
)
def test_what_fits_stays(name: str) -> None:
    assert fitting(name) == name
    assert len(encode_name(name)) <= NAME_BYTES_MAX


def test_names_that_begin_alike_stay_apart() -> None:
    one, two = fitting("日本" * 40 + "1"), fitting("日本" * 40 + "2")
    assert one != two
    assert one[:15] == two[:15] == ("日本" * 8)[:15]


@given(st.lists(ANY, unique=True, max_size=8))
@example(["a\t", "a\n", "a\ufffd", "a"])
def test_names_to_be_shown_stay_different_ones(names: list[str]) -> None:
    shown = printable_names(names)
    assert list(shown) != [] or names == []
    assert set(shown) == set(names)
    assert len(set(shown.values())) == len(names)
    assert all(map(str.isprintable, shown.values()))
    assert all(shown[name] == name for name in names if name.isprintable())


def test_a_character_that_can_not_be_shown_is_replaced() -> None:
    assert printable("lr\u00a0(max)\t\x00") == "lr\ufffd(max)\ufffd\ufffd"
    plain = {"loss": 1, "dataset name": 2}
    assert with_printable_names(plain) is plain
    assert with_printable_names({"a\t": 1, "a\n": 2}) == {"a\ufffd": 1, "a\ufffd\ufffd": 2}
