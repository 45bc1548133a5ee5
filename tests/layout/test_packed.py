"""Packed lists come back as they were, whatever they hold; what is cut is told as such."""

from __future__ import annotations

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranklog.layout.packed import (
    pack_column,
    pack_integers,
    pack_pairs,
    unpack_column,
    unpack_integers,
    unpack_pairs,
)

INT64 = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(INT64) | st.lists(INT64).map(sorted) | st.lists(st.integers(0, 300)))
def test_integers_come_back(values: list[int]) -> None:
    stored = msgpack.unpackb(msgpack.packb(pack_integers(values)))
    assert list(unpack_integers(stored)) == values


@given(st.lists(INT64) | st.lists(INT64 | st.none() | st.text() | st.floats(allow_nan=False)))
def test_columns_come_back(values: list[object]) -> None:
    stored = msgpack.unpackb(msgpack.packb(pack_column(values)))
    found = list(unpack_column(stored, len(values)))
    assert [(type(v), v) for v in found] == [(type(v), v) for v in values]


@given(st.lists(st.tuples(INT64, st.integers(0, 9))))
def test_pairs_come_back(pairs: list[tuple[int, int]]) -> None:
    assert unpack_pairs(msgpack.unpackb(msgpack.packb(pack_pairs(pairs)))) == tuple(pairs)


@pytest.mark.parametrize("packed", [[3, 0, 1, False, b"ab"], [1, 0, 9, False, b"a" * 9]])
def test_integers_that_are_cut_are_refused(packed: list[object]) -> None:
    with pytest.raises(ValueError, match="cut"):
        unpack_integers(packed)
