"""Columns side by side: the same places as line by line, in plain Python."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from ranklog.model.answer import Line
from ranklog.spmd import compare as plain
from ranklog.spmd.align import align
from ranklog.spmd.columns import Column, Keyed, iteration_of
from ranklog.spmd.compare import WINDOW_NS, Side
from ranklog.spmd.walk import Walk, walk
from tests.spmd.lines import line

SECOND = 1_000_000_000
TEXTS = [
    "forward",
    "backward",
    "optimizer step done",
    "optimizer step failed",
    "loss is fine",
    "a b c d",
    "a b c e",
]


def columns_of(sides: Sequence[Sequence[Line]]) -> tuple[list[Column], list[Keyed], list[int]]:
    """The lines as columns, keyed by their text; and where clocks begin, as compare does it."""
    numbers: dict[str, int] = {}
    columns = []
    for side in sides:
        key = [numbers.setdefault(one.text, len(numbers)) for one in side]
        columns.append(
            Column(
                side[0].run_id if side else "",
                np.array([one.attempt for one in side], np.int64),
                np.array(
                    [-1 if one.iteration is None else one.iteration for one in side], np.int64
                ),
                np.array([one.ts_ns for one in side], np.int64),
                np.array(key, np.int32),
            )
        )
    starts = [min((one.ts_ns for one in side), default=0) for side in sides]
    runs = {side[0].run_id for side in sides if side}
    shared = min((at for at, side in zip(starts, sides, strict=True) if side), default=0)
    origins = [shared] * len(sides) if len(runs) < 2 else starts
    return columns, [Keyed(None, text) for text in numbers], origins


def found_by(sides: Sequence[Sequence[Line]]) -> Walk:
    columns, keys, origins = columns_of(sides)
    return walk(columns, keys, origins=origins, window_ns=WINDOW_NS)


def random_side(rng: random.Random, rank: int) -> list[Line]:
    """Iterations that are nearly the same on all ranks; sometimes without numbers."""
    lines: list[Line] = []
    names = rng.random() < 0.7
    ts, attempts = rng.randrange(3 * SECOND), rng.randint(1, 2)
    for attempt in range(attempts):
        for iteration in range(-1, rng.randint(2, 6)):
            said = [text for text in TEXTS[:3] if rng.random() < 0.9]
            said += rng.sample(TEXTS, rng.randint(0, 2)) if rng.random() < 0.3 else []
            if rng.random() < 0.1:
                rng.shuffle(said)
            for text in said:
                ts += rng.choice([0, SECOND // 3, SECOND, 40 * SECOND if rng.random() < 0.1 else 0])
                numbered = names and iteration >= 0 and rng.random() < 0.7
                one = line(
                    text,
                    rank=rank,
                    seq=len(lines),
                    ts_ns=ts,
                    iteration=iteration if numbered else None,
                )
                one.attempt = attempt
                lines.append(one)
    return lines


@settings(max_examples=200, deadline=None, derandomize=True, phases=[Phase.generate])
@given(seed=st.integers(0, 2**32), width=st.integers(2, 4), across=st.booleans())
def test_columns_meet_where_lines_do(seed: int, width: int, across: bool) -> None:
    rng = random.Random(seed)
    sides = [random_side(rng, rank) for rank in range(width)]
    if across:
        for one in sides[-1]:
            one.run = "other"
    found = found_by(sides)
    wanted = plain._walk([Side(str(i), side) for i, side in enumerate(sides)], WINDOW_NS)
    places = [
        (
            tuple(None if one is None else sides[i].index(one) for i, one in enumerate(slot.lines)),
            slot.moved,
            slot.words,
        )
        for _, slot in wanted
    ]
    own = [
        (tuple(None if at < 0 else at for at in rows), moved, words)
        for rows, moved, words in zip(
            found.rows.tolist(), found.moved.tolist(), found.words.tolist(), strict=True
        )
    ]
    assert own == places
    iterations = [None if not block[1] else block[2] for block, _ in wanted]
    assert [iteration_of(code) for code in found.code.tolist()] == iterations


@settings(max_examples=100, deadline=None, derandomize=True, phases=[Phase.generate])
@given(
    st.lists(st.lists(st.integers(0, 3), max_size=6), min_size=1, max_size=5),
    st.lists(st.lists(st.integers(0, 3), max_size=6), min_size=1, max_size=5),
)
def test_iterations_are_each_aligned_as_if_they_were_alone(
    first: list[list[int]], second: list[list[int]]
) -> None:
    words = ["one", "two two", "three three three", "four four four four"]
    sides = [
        [line(words[k], rank=rank, iteration=i) for i, keys in enumerate(side) for k in keys]
        for rank, side in enumerate((first, second))
    ]
    found = found_by(sides)
    matched = [
        (iteration_of(code), *rows)
        for code, rows in zip(found.code.tolist(), found.rows.tolist(), strict=True)
        if min(rows) >= 0
    ]
    for i in range(min(len(first), len(second))):
        at = [sum(map(len, side[:i])) for side in (first, second)]
        straight = {
            (at[0] + a, at[1] + b) for a, b in align([first[i], second[i]]) if min(a, b) >= 0
        }
        assert straight <= {(a, b) for iteration, a, b in matched if iteration == i}
    assert len({a for _, a, _ in matched}) == len({b for _, _, b in matched}) == len(matched)
