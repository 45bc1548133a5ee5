"""Stretches of a stream in which iterations do not go back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranklog.layout.index import SegmentIndex
from ranklog.layout.passes import PASSES_MAX, passes_by_stream
from ranklog.model.frame import NO_ITERATION, STREAM_RANK
from ranklog.model.index import Pass
from tests.layout.test_index import HEAD, encoded


def passes_of(iterations: list[int], ranks: list[int] | None = None) -> tuple[Pass, ...]:
    count = len(iterations)
    rank = np.full(count, STREAM_RANK, np.int32) if ranks is None else np.array(ranks, np.int32)
    seq = np.arange(count, dtype=np.int64)
    found = passes_by_stream(
        np.zeros(count, np.int32), seq, 10 * seq, np.array(iterations, np.int64), rank
    )
    return found.get(0, ())


@pytest.mark.parametrize(
    ("iterations", "begins"),
    [
        ([], []),
        ([NO_ITERATION], []),
        ([0, 0, 1, NO_ITERATION, 2], [0]),
        ([0, 1, 2, 3, 1, 2, 3, 4], [0, 4]),  # from 1 again
        ([5, 6, 4, 7, 8], [0, 2, 3]),  # one line that looks back
        ([0, 1, 2, 3, 1, 2, 1, 2, 3], [0, 4, 6, 7]),  # twice, by one at last
        ([3, 4, 2], [0, 2]),  # the next segment goes on
    ],
)
def test_a_pass_begins_where_iterations_go_back(iterations: list[int], begins: list[int]) -> None:
    assert [one.first_seq for one in passes_of(iterations)] == begins


def test_a_pass_says_what_it_begins_with_and_reaches() -> None:
    assert passes_of([7, 7, 9, 8, 9]) == (
        Pass(first_seq=0, first_ns=0, first=7, second=9, high_seq=2, high_ns=20, high=9),
        Pass(first_seq=3, first_ns=30, first=8, second=8, high_seq=3, high_ns=30, high=8),
        Pass(first_seq=4, first_ns=40, first=9, second=9, high_seq=4, high_ns=40, high=9),
    )


def test_of_several_ranks_in_a_stream_the_one_that_names_most_counts() -> None:
    assert len(passes_of([5, 4, 6, 4, 7], [0, 1, 0, 1, 0])) == 1


@given(st.lists(st.integers(0, 9), max_size=60))
def test_passes_cover_a_stream_in_order_and_are_few(iterations: list[int]) -> None:
    found = passes_of(iterations)
    assert len(found) <= PASSES_MAX
    assert [one.first_seq for one in found] == sorted({one.first_seq for one in found})
    if len(found) < PASSES_MAX - 1:
        edges = [*(one.first_seq for one in found), len(iterations)]
        for one, begin, end in zip(found, edges, edges[1:], strict=False):
            part = iterations[begin:end]
            assert (one.first, one.high) == (part[0], max(part))
            assert iterations[one.high_seq] == one.high


@given(st.lists(st.lists(st.integers(-1, 2**40), min_size=7, max_size=7), max_size=5))
def test_an_index_keeps_passes(values: list[list[int]]) -> None:
    passes = tuple(Pass(*numbers) for numbers in values)
    first, second = HEAD.streams
    for streams in (
        (replace(first, passes=passes), second),
        (replace(first, passes=passes[:1]), replace(second, passes=passes[:1])),
    ):
        head = replace(HEAD, streams=streams)
        assert SegmentIndex.open(encoded(head), "k").head == head
