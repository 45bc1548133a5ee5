"""Blocks whose sides say things in one order are merged as an alignment of each would have it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ranklog.spmd.align import align
from ranklog.spmd.columns import Column, place_columns
from ranklog.spmd.grid import Grid, make_grid
from ranklog.spmd.in_order import merge_in_order

KEYS = 5
OWN = np.arange(KEYS)  # each key a group of its own
Side = Sequence[Sequence[int]]


def grid_of(*sides: Side) -> Grid:
    """Sides by iteration: the keys of each."""
    columns = [
        Column(
            "r",
            np.zeros(sum(map(len, side)), np.int64),
            np.repeat(np.arange(len(side)), [len(keys) for keys in side]),
            np.zeros(sum(map(len, side)), np.int64),
            np.array([key for keys in side for key in keys], np.int32),
        )
        for side in sides
    ]
    return make_grid(columns, place_columns(columns, [0] * len(sides)))


def merged(grid: Grid, groups: Sequence[int] | None = None) -> dict[int, list[list[int]]]:
    """Rows by block, of the blocks that were merged."""
    blocks = np.arange(len(grid.codes))
    done, own, rows = merge_in_order(grid, blocks, OWN if groups is None else np.array(groups))
    return {int(at): rows[own == at].tolist() for at in np.flatnonzero(done)}


def test_what_one_side_says_alone_goes_before_the_next_place_that_both_have() -> None:
    assert merged(grid_of([[0, 1, 2]], [[0, 3, 2, 4]])) == {
        0: [[0, 0], [1, -1], [-1, 1], [2, 2], [-1, 3]]
    }


def test_a_key_that_stands_twice_on_both_sides_is_merged() -> None:
    assert merged(grid_of([[0, 1, 0]], [[0, 0]])) == {0: [[0, 0], [1, -1], [2, 1]]}


def test_a_key_that_stands_more_often_on_one_side_is_left_to_an_alignment() -> None:
    assert merged(grid_of([[0, 0, 1], [2]], [[0, 1], [3]])) == {1: [[3, -1], [-1, 2]]}


def test_another_order_is_left_to_an_alignment() -> None:
    assert merged(grid_of([[0, 1], [2]], [[1, 0], [2, 3]])) == {1: [[2, 2], [-1, 3]]}


def test_lines_alone_that_might_be_one_message_in_other_words_are_left_to_a_pairing() -> None:
    assert merged(grid_of([[0, 1], [2]], [[0, 2], [2, 1]]), groups=[0, 1, 1, 2, 2]) == {
        1: [[2, 2], [-1, 3]]
    }


def test_an_iteration_that_only_one_side_has_is_merged() -> None:
    assert merged(grid_of([[], [0, 1]], [[2], []])) == {0: [[-1, 0]], 1: [[0, -1], [1, -1]]}


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.tuples(*[st.lists(st.integers(0, KEYS - 1), max_size=6)] * 2), min_size=1, max_size=6
    )
)
def test_each_merged_block_is_what_an_alignment_of_it_alone_finds(
    both: list[tuple[list[int], list[int]]],
) -> None:
    grid = grid_of([one for one, _ in both], [two for _, two in both])
    for block, rows in merged(grid).items():
        sides, lines = grid.sequences(block), grid.lines(block)
        wanted = [
            [-1 if at < 0 else own[at] for own, at in zip(lines, row, strict=True)]
            for row in align(sides)
        ]
        assert rows == wanted


@settings(max_examples=100, deadline=None)
@given(st.lists(st.permutations(range(KEYS)), min_size=1, max_size=6), st.data())
def test_blocks_that_only_lack_lines_are_all_merged(
    sides: list[list[int]], data: st.DataObject
) -> None:
    other = [[key for key in keys if data.draw(st.booleans())] for keys in sides]
    grid = grid_of(sides, other)
    assert len(merged(grid)) == len(grid.codes)
