"""Filters of grams: every part of every indexed token is held, few others are, numbers are doubt."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranklog.layout import grams_build, tokens_pure
from ranklog.layout.grams import GRAM_BYTES, GramFilter, bloom_key, gram_slots, grams_held
from ranklog.layout.grams_build import build_grams

TOKENS = st.from_regex(r"[0-9a-zA-Z]{1,20}", fullmatch=True).filter(tokens_pure.is_indexed_token)
ROOM = 1 << 20  # bytes of a row group, of which its filter may take a share


def build(groups: list[list[str]], size: int = ROOM) -> list[bytes]:
    """Filters of groups of tokens; every token stands in the text behind the one before it."""
    tokens = [token for group in groups for token in group]
    length = np.array([len(token) for token in tokens], np.int64)
    at = np.cumsum(length) - length
    group = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    text = np.frombuffer("".join(tokens).encode(), np.uint8)
    filters = build_grams(text, group, at, length, [size] * len(groups))
    return [bits for bits, _ in filters]


def holds(bits: bytes, part: str) -> bool:
    return grams_held(b"\x00" + bits, 1, len(bits), gram_slots(part))


def parts_of(token: str) -> list[str]:
    return [token[a:b] for a in range(len(token)) for b in range(a + 1, len(token) + 1)]


@given(st.lists(st.lists(TOKENS, max_size=6), min_size=1, max_size=4), st.integers(1, 30))
def test_every_part_of_every_token_is_held(groups: list[list[str]], chunk: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grams_build, "_CHUNK_GRAMS", chunk)
        filters = build(groups)
    assert filters == build(groups)
    for tokens, bits in zip(groups, filters, strict=True):
        for part in (part for token in tokens for part in parts_of(token)):
            assert holds(bits, part) and holds(bits, part.upper()) and holds(bits, part.lower())


@pytest.mark.parametrize("token", ["a1b2c", "a1b2c3", "a1b2c3d", "a1b2c3d4", "a1b2c3d4e"])
def test_a_text_may_end_with_its_token(token: str) -> None:
    (bits,) = build([[token]])
    assert all(holds(bits, part) for part in parts_of(token))
    assert not holds(bits, token[:-1] + "zz")


def test_of_absent_parts_two_fifths_to_the_power_of_their_grams_are_held() -> None:
    rng = random.Random(5)

    def ids(count: int, size: int) -> list[str]:
        found = (f"{rng.getrandbits(4 * size):0{size}x}" for _ in range(count))
        return [one for one in found if gram_slots(one)]

    (bits,) = build([ids(4_000, 12)])
    for size, low, high in ((5, 0.36, 0.44), (7, 0.05, 0.09), (8, 0.015, 0.04), (12, 0, 0.003)):
        absent = ids(4_000, size)
        assert low <= sum(holds(bits, part) for part in absent) / len(absent) <= high


@pytest.mark.parametrize("part", ["", "a1b2", "12345", "0123456789", "12e45", "1234E", "e1234"])
def test_short_parts_and_what_a_number_may_hold_are_not_told(part: str) -> None:
    assert gram_slots(part) == ()
    (bits,) = build([["f00dfeed"]])
    assert holds(bits, part)


@pytest.mark.parametrize("part", ["12e4e5", "abcde", "1234f", "eeeee"])
def test_what_no_number_holds_is_told(part: str) -> None:
    (bits,) = build([["x9x9x9"]])
    assert len(gram_slots(part)) == len({part[i : i + 5] for i in range(len(part) - 4)})
    assert not holds(bits, part)


def test_slots_stay_what_they_are() -> None:
    assert gram_slots("abc12") == gram_slots("ABC12") == SLOTS_ABC12
    assert gram_slots("4fa1c0") == SLOTS_4FA1C0


SLOTS_ABC12 = (875916,)
SLOTS_4FA1C0 = (40281, 222443)


def test_a_filter_that_would_take_too_much_of_its_group_says_nothing() -> None:
    rng = random.Random(5)
    tokens = [f"{rng.getrandbits(160):040x}" for _ in range(200)]
    assert len(build([tokens])[0]) > len(tokens) * 36 * 2 / 8 * 0.9
    assert build([tokens], size=1_000) == [b""]
    assert holds(b"", "abc12")


def test_a_group_without_tokens_holds_nothing() -> None:
    empty, other = build([[], ["a1b2c3"]])
    assert (len(empty), holds(empty, "a1b2c"), holds(other, "a1b2c")) == (1, False, True)
    assert GRAM_BYTES == 5


def test_blooms_say_whether_long_tokens_are_missing() -> None:
    assert bloom_key(()) == bloom_key([GramFilter(b"1")]) == "mixed"
    assert bloom_key([GramFilter(b"1"), GramFilter(b"1", holds_long=True)]) == "short"
