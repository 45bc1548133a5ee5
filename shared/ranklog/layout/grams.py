"""Filters of what lies inside tokens: one bit for every run of five characters of an indexed token.

A needle inside a token holds several such runs, so two bits for each will do: two fifths of the bits
are set, and a needle of eight characters, which has four, is taken to be in one of forty row groups
that don't hold it. A whole token of LONG_TOKEN_BYTES is checked as well as in the blooms, which may
then leave it out. Checking is pure; building is in `grams_build`.

A gram's slot is 20 bits of a product (multiplicative hashing); its bit in a filter of n bits is
slot * n >> 20. Case is folded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ranklog.layout.tokens_pure import LOW, M1

GRAM_BYTES = 5
SLOT_BITS = 20
BITS_PER_GRAM = 2
LONG_TOKEN_BYTES = 10
# Unused bytes of a gram's word are shifted out.
UNUSED_BITS = 64 - 8 * GRAM_BYTES
# Which tokens an index's blooms hold: all indexed ones, or no long ones in groups that say so. Who
# does not know the second takes every token for doubt.
ALL_TOKENS, SHORT_TOKENS = "mixed", "short"
_MASK = 0xFFFFFFFFFFFFFFFF
# What a token of digits alone, or one like a float, may hold: neither is indexed.
_NUMBER_PART = re.compile(r"[0-9]*[eE]?[0-9]*")


@dataclass(frozen=True, slots=True)
class GramFilter:
    """A row group's filter; b"" says nothing. `holds_long`: the group's bloom has no long tokens."""

    bits: bytes
    holds_long: bool = False


def bloom_key(filters: Sequence[GramFilter]) -> str:
    """Which tokens the blooms beside these filters hold."""
    return SHORT_TOKENS if any(one.holds_long for one in filters) else ALL_TOKENS


@lru_cache(maxsize=1024)
def gram_slots(word: str) -> tuple[int, ...]:
    """Slots of the grams of letters and digits inside a token.

    Empty where a filter says nothing: of fewer than GRAM_BYTES, or a number may hold them.
    """
    if len(word) < GRAM_BYTES or _NUMBER_PART.fullmatch(word):
        return ()
    data = word.encode("ascii")
    return tuple(
        {_slot(data[at : at + GRAM_BYTES]): None for at in range(len(data) - GRAM_BYTES + 1)}
    )


def _slot(gram: bytes) -> int:
    word = int.from_bytes(gram, "little") | LOW
    return ((word << UNUSED_BITS & _MASK) * M1 & _MASK) >> (64 - SLOT_BITS)


def grams_held(filters: bytes, offset: int, length: int, slots: Iterable[int]) -> bool:
    """Whether an indexed token of the filter at filters[offset:offset+length] may hold the grams.

    A filter of no bytes says nothing.
    """
    if not length:
        return True
    bits = length * 8
    for slot in slots:
        bit = slot * bits >> SLOT_BITS
        if not filters[offset + (bit >> 3)] >> (bit & 7) & 1:
            return False
    return True
