"""Aligns sequences of small integers: which places of two or more sequences belong together.

Shapes: a sequence is n keys; a row is one entry per sequence, a position in it or ABSENT. Positions
of each sequence ascend from row to row.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

ABSENT = -1
# Bits of the table of an exact alignment (64 MiB); over it an O(n log n) one takes its place.
EXACT_BITS_MAX = 1 << 29


@dataclass(frozen=True, slots=True)
class Band:
    """Only places at most `within` apart may match. `a`, `b`: times of the places, ascending."""

    a: Sequence[int]
    b: Sequence[int]
    within: int

    def allows(self, i: int, j: int) -> bool:
        """Whether a[i] and b[j] are near enough."""
        return abs(self.a[i] - self.b[j]) <= self.within

    def reach(self, j: int) -> tuple[int, int]:
        """Half-open range of places of `a` that are near b[j]."""
        at = self.b[j]
        return bisect_left(self.a, at - self.within), bisect_right(self.a, at + self.within)


def matches(a: Sequence[int], b: Sequence[int], band: Band | None = None) -> list[tuple[int, int]]:
    """Pairs (i, j), ascending in both, with a[i] == b[j]: a longest common subsequence.

    Equal ends are taken first. What is left between them is aligned exactly by bit-parallel dynamic
    programming (Hyyrö 2004, "Bit-parallel LCS-length computation revisited"): n words of m bits. A
    table over EXACT_BITS_MAX is not built; then the k-th occurrence of a key in one sequence may only
    match the k-th in the other, which needs one longest increasing subsequence.
    """
    shorter = min(len(a), len(b))
    head = 0
    while head < shorter and a[head] == b[head] and (band is None or band.allows(head, head)):
        head += 1
    tail = 0
    while tail < shorter - head and a[-1 - tail] == b[-1 - tail]:
        if band is not None and not band.allows(len(a) - 1 - tail, len(b) - 1 - tail):
            break
        tail += 1
    middle_a, middle_b = a[head : len(a) - tail], b[head : len(b) - tail]
    if band is not None:
        ends = slice(head, len(a) - tail), slice(head, len(b) - tail)
        band = Band(band.a[ends[0]], band.b[ends[1]], band.within)
    exact = len(middle_a) * len(middle_b) <= EXACT_BITS_MAX
    middle = (_exact if exact else _by_occurrence)(middle_a, middle_b, band)
    pairs = [(i, i) for i in range(head)]
    pairs.extend((head + i, head + j) for i, j in middle)
    pairs.extend((len(a) - k, len(b) - k) for k in range(tail, 0, -1))
    return pairs


def _exact(a: Sequence[int], b: Sequence[int], band: Band | None) -> list[tuple[int, int]]:
    """Bit i of the j-th word is 0 where the common length grows from a[:i] to a[:i+1] over b[:j]."""
    places: dict[int, int] = defaultdict(int)
    for i, key in enumerate(a):
        places[key] |= 1 << i
    full = (1 << len(a)) - 1
    word = full
    words = []
    for j, key in enumerate(b):
        both = word & places.get(key, 0)
        if both and band is not None:
            low, high = band.reach(j)
            both &= (1 << high) - (1 << low)
        word = ((word + both) | (word - both)) & full
        words.append(word)
    pairs = []
    i, j = len(a) - 1, len(b) - 1
    while i >= 0 and j >= 0:
        if a[i] == b[j] and (band is None or band.allows(i, j)):
            pairs.append((i, j))
            i -= 1
            j -= 1
        elif words[j] >> i & 1:
            i -= 1
        else:
            j -= 1
    pairs.reverse()
    return pairs


def _by_occurrence(a: Sequence[int], b: Sequence[int], band: Band | None) -> list[tuple[int, int]]:
    """The k-th of a key matches the k-th; of these pairs a longest ascending chain."""
    places: dict[int, list[int]] = defaultdict(list)
    for j in range(len(b) - 1, -1, -1):
        places[b[j]].append(j)
    candidates = [(i, places[key].pop()) for i, key in enumerate(a) if places.get(key)]
    if band is not None:
        candidates = [(i, j) for i, j in candidates if band.allows(i, j)]
    tops: list[int] = []  # smallest end of a chain of each length
    holders: list[int] = []
    before: list[int] = []
    for at, (_, j) in enumerate(candidates):
        length = bisect_left(tops, j)
        before.append(holders[length - 1] if length else ABSENT)
        if length == len(tops):
            tops.append(j)
            holders.append(at)
        else:
            tops[length], holders[length] = j, at
    chain = []
    at = holders[-1] if holders else ABSENT
    while at != ABSENT:
        chain.append(candidates[at])
        at = before[at]
    chain.reverse()
    return chain


def align(
    sequences: Sequence[Sequence[int]],
    times: Sequence[Sequence[int]] | None = None,
    within: int = 0,
) -> list[list[int]]:
    """Rows of positions, one per sequence; a sequence is set against the rows of those before it.

    With `times` (ascending per sequence), only places at most `within` apart match.
    """
    if not sequences:
        return []
    rows: list[list[int]] = [[i] for i in range(len(sequences[0]))]
    for width, sequence in enumerate(sequences[1:], start=1):
        sides = [next(side for side, at in enumerate(row) if at != ABSENT) for row in rows]
        heads = list(
            zip(sides, (row[side] for side, row in zip(sides, rows, strict=True)), strict=True)
        )
        keys = [sequences[side][at] for side, at in heads]
        band = None
        if times is not None:
            clock = list(accumulate((times[side][at] for side, at in heads), max))
            band = Band(clock, times[width], within)
        rows = _weave(rows, width, len(sequence), matches(keys, sequence, band))
    return rows


def _weave(
    rows: list[list[int]], width: int, length: int, pairs: list[tuple[int, int]]
) -> list[list[int]]:
    """Add a sequence of `length` to rows of `width` entries, joined where `pairs` say."""
    woven: list[list[int]] = []
    row_at, seq_at = 0, 0
    for i, j in [*pairs, (len(rows), length)]:
        woven.extend([*rows[k], ABSENT] for k in range(row_at, i))
        woven.extend([ABSENT] * width + [k] for k in range(seq_at, j))
        if i < len(rows):
            woven.append([*rows[i], j])
        row_at, seq_at = i + 1, j + 1
    return woven
