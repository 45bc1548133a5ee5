"""Alignment of sequences of keys."""

from __future__ import annotations

import time
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ranklog.spmd import align as module
from ranklog.spmd.align import ABSENT, Band, align, matches

SEQUENCE = st.lists(st.integers(0, 4), max_size=24)


def longest(a: list[int], b: list[int]) -> int:
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            same = table[i][j] + 1 if x == y else 0
            table[i + 1][j + 1] = max(same, table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


def assert_is_chain(pairs: list[tuple[int, int]], a: list[int], b: list[int]) -> None:
    assert all(a[i] == b[j] for i, j in pairs)
    assert all(p[0] < q[0] and p[1] < q[1] for p, q in pairwise(pairs))


@given(SEQUENCE, SEQUENCE)
def test_matches_are_a_longest_common_subsequence(a: list[int], b: list[int]) -> None:
    pairs = matches(a, b)
    assert_is_chain(pairs, a, b)
    assert len(pairs) == longest(a, b)


@given(SEQUENCE, SEQUENCE)
def test_the_way_without_a_table_gives_a_common_subsequence(a: list[int], b: list[int]) -> None:
    assert_is_chain(module._by_occurrence(a, b, None), a, b)


@given(SEQUENCE, SEQUENCE, st.integers(0, 6))
def test_a_band_keeps_far_places_apart(a: list[int], b: list[int], within: int) -> None:
    band = Band(list(range(len(a))), list(range(0, 2 * len(b), 2)), within)
    pairs = matches(a, b, band)
    assert_is_chain(pairs, a, b)
    assert all(abs(i - 2 * j) <= within for i, j in pairs)


@given(st.lists(SEQUENCE, max_size=5))
def test_rows_hold_every_place_of_every_sequence_once_and_in_order(
    sequences: list[list[int]],
) -> None:
    rows = align(sequences)
    for side, sequence in enumerate(sequences):
        assert [row[side] for row in rows if row[side] != ABSENT] == list(range(len(sequence)))
    for row in rows:
        keys = {sequences[side][at] for side, at in enumerate(row) if at != ABSENT}
        assert len(keys) == 1


def test_twenty_thousand_places_a_side_take_no_quadratic_time() -> None:
    a = [(k * k + 3 * k) % 17 for k in range(20_000)]
    b = [(k * k + 5 * k) % 17 for k in range(20_000)]
    began = time.perf_counter()
    matches(a, b)
    assert time.perf_counter() - began < 5
