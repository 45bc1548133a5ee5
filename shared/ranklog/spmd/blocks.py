"""Cuts each rank's lines into blocks that belong together: iterations, and what is before the first.

Barriers between iterations make an iteration the unit of comparison: whatever ranks say in it, they
say between the same two barriers, though their clocks differ and their threads interleave.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from ranklog.model.answer import Line

# A rank with fewer than this share of the iterations that its peer names is placed by time instead.
OWN_CLOCK_SHARE = 0.5
# Fewer iterations make no clock: a number in one error message must not place all others.
CLOCK_ITERATIONS_MIN = 3

Block = tuple[int, int, int]  # (number of the attempt, 0 | 1 has an iteration, iteration | 0)


@dataclass(slots=True)
class Placed:
    """One side's lines by block, in order. `loose`: blocks where a line was placed by time."""

    blocks: dict[Block, list[Line]] = field(default_factory=lambda: defaultdict(list))
    loose: set[Block] = field(default_factory=set)


def place(sides: Sequence[Sequence[Line]], *, origins: Sequence[int]) -> list[Placed]:
    """Give every line its block. `origins`: where each side's clock begins, to compare runs.

    A line without an iteration has the one before it in its rank. A rank that names few or no
    iterations (in many frameworks only one rank does) is placed by the clock of the side that
    names most. What is before the first iteration is one block, and all where nobody names one.
    """
    attempts = _attempt_numbers(sides)
    across = len({side[0].run_id for side in sides if side}) > 1
    named = [
        len({(x.attempt, x.iteration) for x in side if x.iteration is not None}) for side in sides
    ]
    best = max(range(len(sides)), key=named.__getitem__)
    clock = _clock(sides[best], attempts[best], origins[best])
    placed = []
    for at, side in enumerate(sides):
        by_time = named[best] >= CLOCK_ITERATIONS_MIN and named[at] < OWN_CLOCK_SHARE * named[best]
        own = clock if by_time else {}
        placed.append(_place_side(side, attempts[at], origins[at], own, across=across))
    return placed


def _attempt_numbers(sides: Sequence[Sequence[Line]]) -> list[dict[int, int]]:
    """Per side: attempt -> its place among the attempts of the side's run."""
    seen: dict[str, set[int]] = defaultdict(set)
    for side in sides:
        for line in side:
            seen[line.run_id].add(line.attempt)
    numbers = {run: {a: n for n, a in enumerate(sorted(found))} for run, found in seen.items()}
    return [numbers[side[0].run_id] if side else {} for side in sides]


def _clock(
    side: Sequence[Line], attempts: dict[int, int], origin: int
) -> dict[int, tuple[list[int], list[int]]]:
    """Attempt -> (times since the origin at which an iteration began, those iterations)."""
    clock: dict[int, tuple[list[int], list[int]]] = {}
    for line in side:
        if line.iteration is None:
            continue
        times, iterations = clock.setdefault(attempts[line.attempt], ([], []))
        if not iterations or line.iteration > iterations[-1]:
            times.append(max(line.ts_ns - origin, times[-1] if times else line.ts_ns - origin))
            iterations.append(line.iteration)
    return clock


def _place_side(
    side: Sequence[Line],
    attempts: dict[int, int],
    origin: int,
    clock: dict[int, tuple[list[int], list[int]]],
    *,
    across: bool,
) -> Placed:
    """`across` runs an iteration is the same whichever attempt came so far."""
    placed = Placed()
    carried: int | None = None
    attempt: int | None = None
    for line in side:
        number = attempts[line.attempt]
        if line.attempt != attempt:
            attempt, carried = line.attempt, None
        since = line.ts_ns - origin
        if line.iteration is not None:
            carried = line.iteration
        iteration = carried
        if line.iteration is None and number in clock:
            times, iterations = clock[number]
            at = bisect_right(times, since) - 1
            iteration = iterations[at] if at >= 0 else None
        block = (number, 0, 0)
        if iteration is not None:
            block = (0 if across else number, 1, iteration)
        placed.blocks[block].append(line)
        if line.iteration is None and number in clock:
            placed.loose.add(block)
    return placed
