"""Lines of a compared side as columns, and the block of each: iterations, and what is before the first.

The same placing as spmd/blocks, for millions of lines. Shapes: n lines in order; `attempt` I64[n],
`iteration` I64[n] (ABSENT: none), `ts_ns` I64[n], `key` I32[n] into the keys of the comparison.

A block's code orders blocks as they are walked: number of the attempt, whether it has an iteration, the
iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ranklog.spmd.blocks import CLOCK_ITERATIONS_MIN, OWN_CLOCK_SHARE
from ranklog.spmd.table import ABSENT, I32, I64, Flags

_ITERATION_BITS = 42
_HAS_ITERATION = 1 << _ITERATION_BITS
_ATTEMPT_SHIFT = _ITERATION_BITS + 1

Clock = dict[int, tuple[I64, I64]]  # attempt's number -> times since the origin, iterations


@dataclass(frozen=True, slots=True)
class Column:
    """One side. `run`: sides of one run share a clock and count attempts together."""

    run: str
    attempt: I64
    iteration: I64
    ts_ns: I64
    key: I32

    def __len__(self) -> int:
        return len(self.key)


@dataclass(frozen=True, slots=True)
class Keyed:
    """What lines of a key have in common. `level`: of the first of them."""

    call_site: str | None
    shape: str
    level: int | None = None


@dataclass(frozen=True, slots=True)
class PlacedColumn:
    """`code` I64[n]: each line's block. `loose`: codes of blocks where a line was placed by time."""

    code: I64
    loose: I64


def has_iteration(code: int) -> bool:
    """Whether a block is an iteration."""
    return bool(code & _HAS_ITERATION)


def iteration_of(code: int) -> int | None:
    """Its iteration."""
    return code & (_HAS_ITERATION - 1) if has_iteration(code) else None


def place_columns(columns: Sequence[Column], origins: Sequence[int]) -> list[PlacedColumn]:
    """Give every line its block: see blocks.place."""
    numbers = _attempt_numbers(columns)
    named = [_named(column, number) for column, number in zip(columns, numbers, strict=True)]
    best = max(range(len(columns)), key=named.__getitem__)
    across = len({column.run for column in columns if len(column)}) > 1
    clock = _clock(columns[best], numbers[best], origins[best])
    placed = []
    for at, column in enumerate(columns):
        by_time = named[best] >= CLOCK_ITERATIONS_MIN and named[at] < OWN_CLOCK_SHARE * named[best]
        own = clock if by_time else {}
        placed.append(_place_side(column, numbers[at], origins[at], own, across=across))
    return placed


def _attempt_numbers(columns: Sequence[Column]) -> list[I64]:
    """Each line's attempt by its place among the attempts of the run."""
    runs: dict[str, list[I64]] = {}
    for column in columns:
        runs.setdefault(column.run, []).append(np.unique(column.attempt))
    known = {run: np.unique(np.concatenate(found)) for run, found in runs.items()}
    return [np.searchsorted(known[column.run], column.attempt) for column in columns]


def _named(column: Column, number: I64) -> int:
    """How many iterations a side names."""
    there = column.iteration != ABSENT
    return len(np.unique((number[there] << _ATTEMPT_SHIFT) | column.iteration[there]))


def _clock(column: Column, number: I64, origin: int) -> Clock:
    """When iterations began, by attempt."""
    clock: Clock = {}
    there = column.iteration != ABSENT
    for attempt in np.unique(number[there]).tolist():
        rows = np.flatnonzero(there & (number == attempt))
        iteration = column.iteration[rows]
        reached = np.maximum.accumulate(iteration)
        new = np.ones(len(rows), np.bool_)
        new[1:] = iteration[1:] > reached[:-1]
        times = np.maximum.accumulate(column.ts_ns[rows[new]] - origin)
        clock[attempt] = (times, iteration[new])
    return clock


def _place_side(
    column: Column, number: I64, origin: int, clock: Clock, *, across: bool
) -> PlacedColumn:
    """Carry iterations on within an attempt; take the clock's where it has the attempt."""
    own = column.iteration != ABSENT
    begins = own.copy()
    begins[:1] = True
    begins[1:] |= number[1:] != number[:-1]
    last = np.maximum.accumulate(np.where(begins, np.arange(len(own)), 0))
    iteration = column.iteration[last] if len(own) else column.iteration
    by_time: Flags = np.zeros(len(own), np.bool_)
    for attempt, (times, iterations) in clock.items():
        rows = np.flatnonzero(~own & (number == attempt))
        at = np.searchsorted(times, column.ts_ns[rows] - origin, side="right") - 1
        iteration[rows] = np.where(at >= 0, iterations[at], ABSENT)
        by_time[rows] = True
    there = iteration != ABSENT
    counted = np.where(there, 0, number) if across else number
    code = (counted << _ATTEMPT_SHIFT) | np.where(there, iteration | _HAS_ITERATION, 0)
    return PlacedColumn(code, np.unique(code[by_time]))
