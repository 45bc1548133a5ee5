"""Build filters of grams (see `grams`) for the row groups of a segment.

Shapes: t indexed tokens, token i is text[at[i]:at[i]+length[i]] in row group group[i].
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ranklog.layout.grams import BITS_PER_GRAM, GRAM_BYTES, SLOT_BITS, UNUSED_BITS
from ranklog.layout.tokens_pure import LOW, M1

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]

# Share of a row group's bytes that its filter may take: 1 of so many.
_SHARE = 24
# A filter with more of its bits set keeps too many row groups to be worth its bytes.
_FILL_MAX = 0.75
# Grams at once, so that their words stay in cache.
_CHUNK_GRAMS = 65_536


def build_grams(
    text: Bytes, group: I64, at: I64, length: I64, group_bytes: Sequence[int]
) -> tuple[tuple[bytes, int], ...]:
    """(filter, distinct grams) per row group; b"" where it would say too little for its bytes."""
    long = np.flatnonzero(length >= GRAM_BYTES)
    of_group = group[long]
    small = len(group_bytes) < 2**15  # numpy has a radix sort of 16 bits
    order = long[np.argsort(of_group.astype(np.int16) if small else of_group, kind="stable")]
    edges = np.searchsorted(group[order], np.arange(len(group_bytes) + 1))
    words = _words(text)
    return tuple(
        _filter(_slots(words, at[order[a:b]], length[order[a:b]]), size)
        for (a, b), size in zip(pairwise(edges.tolist()), group_bytes, strict=True)
    )


def _words(text: Bytes) -> U64:
    """A view of the word that starts at every byte but the last seven."""
    if len(text) < 8:
        text = np.append(text, np.zeros(8, np.uint8))
    return np.lib.stride_tricks.as_strided(
        text[: len(text) & ~7].view("<u8"), shape=(len(text) - 7,), strides=(1,), writeable=False
    )


def _slots(words: U64, at: I64, length: I64) -> I64:
    """Distinct slots of the tokens' grams, ascending."""
    seen = np.zeros(1 << SLOT_BITS, np.bool_)
    past = np.cumsum(length - (GRAM_BYTES - 1))
    first = 0
    while first < len(at):
        before = int(past[first - 1]) if first else 0
        end = max(int(np.searchsorted(past, before + _CHUNK_GRAMS, "right")), first + 1)
        counts = np.diff(past[first:end], prepend=before)
        begin = at[first:end] - (past[first:end] - counts - before)
        place = np.repeat(begin, counts)
        place += np.arange(len(place))
        seen[_hash(words, place)] = True
        first = end
    return np.flatnonzero(seen)


def _hash(words: U64, place: I64) -> U64:
    """Slots of the grams at these places. A gram near the text's end is the end of the last word."""
    last = len(words) - 1
    grams = words[np.minimum(place, last)]  # not take(), which would copy all words
    near = np.flatnonzero(place > last)
    grams[near] >>= (place[near] - last).astype(np.uint64) << np.uint64(3)
    grams |= np.uint64(LOW)
    grams <<= np.uint64(UNUSED_BITS)
    grams *= np.uint64(M1)
    grams >>= np.uint64(64 - SLOT_BITS)
    return grams


def _filter(slots: I64, group_bytes: int) -> tuple[bytes, int]:
    size = min(len(slots) * BITS_PER_GRAM // 8 + 1, group_bytes // _SHARE + 1)
    bits = np.zeros(size * 8, np.bool_)
    bits[slots * len(bits) >> SLOT_BITS] = True
    if np.count_nonzero(bits) > _FILL_MAX * len(bits):
        return b"", len(slots)
    return np.packbits(bits, bitorder="little").tobytes(), len(slots)
