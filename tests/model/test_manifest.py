"""Pieces of manifests come back as they were, and nothing else passes for one."""

from __future__ import annotations

import contextlib
import json
import os
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranklog.errors import Corrupt, TooLarge
from ranklog.limits import MANIFEST_JSON_BYTES_MAX
from ranklog.model.manifest import encode_piece, unpack_piece

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), VALUES, max_size=5))
def test_a_piece_comes_back_as_it_was(piece: dict[str, object]) -> None:
    assert json.loads(unpack_piece(encode_piece(piece))) == piece


def test_equal_pieces_have_equal_bytes() -> None:
    assert encode_piece({"a": 1, "b": 2}) == encode_piece({"b": 2, "a": 1})


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        zlib.compress(b"[]"),
        zlib.compress(b"{"),
        zlib.compress(b"{}")[:-1],
        zlib.compress(b"{}") + b"x",
        zlib.compress(b'{"a":"' + b" " * MANIFEST_JSON_BYTES_MAX + b'"}'),
        zlib.compress(b"[" * 100_000),
        zlib.compress(b"\xff"),
    ],
)
def test_what_is_no_piece_is_corrupt(data: bytes) -> None:
    with pytest.raises(Corrupt):
        unpack_piece(data)


@given(st.binary(max_size=60))
def test_random_bytes_are_corrupt_or_an_object(data: bytes) -> None:
    with contextlib.suppress(Corrupt):
        assert isinstance(json.loads(unpack_piece(data)), dict)


def test_a_piece_over_the_limit_is_refused() -> None:
    with pytest.raises(TooLarge, match="manifest"):
        encode_piece({"noise": os.urandom(200_000).hex()})
