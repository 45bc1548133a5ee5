"""Pickles of plain data come back; anything else is one kind of error, and nothing of it is run."""

from __future__ import annotations

import os
import pickle
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranklog.importer.unpickle import NotPlain, load_plain

_KEYS = st.one_of(st.text(), st.integers(-(2**60), 2**60), st.booleans(), st.none())
_PLAIN = st.recursive(
    st.one_of(_KEYS, st.binary(), st.floats(allow_nan=False)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=6),
        st.lists(inner, max_size=6).map(tuple),
        st.dictionaries(_KEYS, inner, max_size=6),
        st.sets(_KEYS, max_size=4),
        st.frozensets(_KEYS, max_size=4),
    ),
    max_leaves=40,
)


@given(_PLAIN, st.integers(4, 5))
def test_plain_data_comes_back(value: Any, protocol: int) -> None:
    assert load_plain(pickle.dumps(value, protocol)) == value


@given(st.dictionaries(st.text(), st.lists(st.integers(-(2**60), 2**60))), st.integers(2, 5))
def test_numbers_and_texts_come_back_in_every_protocol(value: Any, protocol: int) -> None:
    assert load_plain(pickle.dumps(value, protocol)) == value


@given(_PLAIN.map(lambda value: pickle.dumps(value, 4)), st.data())
def test_a_truncated_pickle_is_refused(whole: bytes, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(NotPlain):
        load_plain(whole[:cut])


@given(st.binary(max_size=300))
def test_whatever_the_bytes_are_the_error_is_one(data: bytes) -> None:
    try:
        load_plain(b"\x80\x02" + data)
    except NotPlain:
        return


@given(_PLAIN.map(lambda value: pickle.dumps(value, 4)), st.data())
def test_a_flipped_byte_is_a_value_or_that_error(whole: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(whole) - 1))
    damaged = bytearray(whole)
    damaged[at] ^= data.draw(st.integers(1, 255))
    try:
        load_plain(bytes(damaged))
    except NotPlain:
        return


class _Run:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_what_would_call_something_is_refused_and_not_called(tmp_path: Path, protocol: int) -> None:
    made = tmp_path / "made"
    with pytest.raises(NotPlain, match="none of plain data"):
        load_plain(pickle.dumps({"entries": [_Run(made)]}, protocol))
    assert not made.exists()


def _deep(depth: int, empty: bytes, close: bytes) -> bytes:
    return b"\x80\x02" + empty * depth + close * (depth - 1) + b"."


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (_deep(100_000, b"]", b"a"), "deep"),
        (b"\x80\x02N" + b"\x85" * 100_000 + b".", "deep"),
        (b"\x80\x02]r\xff\xff\xff\x7f.", "memo"),
        (b"\x80\x02j\xff\xff\xff\x7f.", "never filled"),
        (b"\x80\x02\x8a\xff" + b"\x01" * 255 + b".", "integer"),
        (b"\x80\x02\x8b" + struct.pack("<I", 1 << 20) + bytes(1 << 20) + b".", "integer"),
        (b"\x80\x02X\xff\xff\xff\xffabc.", "breaks off"),
        (b"\x80\x04\x8d" + b"\xff" * 8 + b".", "breaks off"),
        (b"\x80\x02}]K\x01s.", "as a key"),
        (b"\x80\x02]K\x01K\x02u.", "breaks off"),
        (b"\x80\x02K\x01K\x02.", "left over"),
        (b"\x80\x09N.", "protocol"),
        (b"\x80\x02cos\nsystem\n.", "0x63"),
        (b"\x80\x02(", "breaks off"),
        (b"", "breaks off"),
    ],
)
def test_what_is_out_of_bounds_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(NotPlain, match=why):
        load_plain(data)


def test_a_list_that_holds_itself_is_one() -> None:
    found = load_plain(b"\x80\x02]q\x00h\x00a.")
    assert found[0] is found
