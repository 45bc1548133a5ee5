"""Blocks of two sides that say what both say in one order: a merge, of all such blocks at once.

Where each key that both have stands equally often on both sides, and the k-th of a key meets the k-th
without crossing another pair, that is the one longest common subsequence; what only one side says goes
before the next place that both have, the first side's first. So spmd/align would find nothing else.

Shapes: m lines of both sides, the first side's before the second's; B blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranklog.spmd.grid import Grid
from ranklog.spmd.table import ABSENT, I64, Flags


@dataclass(frozen=True, slots=True)
class _Met:
    """Which lines of two sides are partners. Of side s: `of[s]` I64[n] its lines' block (ascending),
    `at[s]` I64[n] their places in the grid; `partner` I64[n1] the first side's line of each line of the
    second, ABSENT where it has none; `alone` Flags[n0]: lines of the first that nobody meets."""

    of: tuple[I64, I64]
    at: tuple[I64, I64]
    partner: I64
    alone: Flags
    doubtful: Flags  # [B]


def merge_in_order(grid: Grid, blocks: I64, groups: I64) -> tuple[Flags, I64, I64]:
    """(which of `blocks` are such, for each place of these its block, and its rows I64[places, 2]).

    `groups` I64[keys]: lines of different keys in one group might be one message in other words; a
    block is left to others where both sides have some of a group alone.
    """
    met = _meet(grid, blocks)
    doubtful = met.doubtful | _crossing(met) | _reworded(grid, met, groups)
    kept = [~doubtful[of] for of in met.of]
    partner = met.partner[kept[1]]
    there = partner != ABSENT
    partner[there] = (np.cumsum(kept[0]) - 1)[partner[there]]
    of = [one[k] for one, k in zip(met.of, kept, strict=True)]
    lines = [grid.order[side][at[k]] for side, (at, k) in enumerate(zip(met.at, kept, strict=True))]
    place, second = _places(partner, of[0], of[1], len(blocks))
    total = len(of[0]) + int((partner == ABSENT).sum())
    rows = np.full((total, 2), ABSENT, np.int64)
    rows[place, 0], rows[second, 1] = lines[0], lines[1]
    own = np.empty(total, np.int64)
    own[place], own[second] = of[0], of[1]
    return ~doubtful, blocks[own], rows


def _meet(grid: Grid, blocks: I64) -> _Met:
    """Lines of one block and key, k-th to k-th. Doubtful: a key that stands more often on one side."""
    spans = [grid.spans(side, blocks) for side in range(2)]
    first = len(spans[0][0])
    of = np.concatenate([spans[0][0], spans[1][0]])
    key = np.concatenate([grid.key[side][at] for side, (_, at) in enumerate(spans)])
    code = of * (int(key.max(initial=0)) + 1) + key
    by = np.argsort(code, kind="stable")
    begins = np.flatnonzero(np.diff(code[by], prepend=-1))
    size = np.diff(begins, append=len(by))
    own = np.add.reduceat(by < first, begins, dtype=np.int64) if len(by) else size
    both = (own > 0) & (own < size)
    doubtful = np.zeros(len(blocks), np.bool_)
    doubtful[of[by[begins[both & (2 * own != size)]]]] = True
    partner = np.full(len(by) - first, ABSENT, np.int64)
    alone = np.ones(first, np.bool_)
    there = np.flatnonzero(np.repeat(both & (2 * own == size), size) & (by >= first))
    partners = by[there - np.repeat(own, size)[there]]
    partner[by[there] - first] = partners
    alone[partners] = False
    return _Met((spans[0][0], spans[1][0]), (spans[0][1], spans[1][1]), partner, alone, doubtful)


def _crossing(met: _Met) -> Flags:
    """Blocks in which both sides say the same in another order."""
    found = np.zeros(len(met.doubtful), np.bool_)
    there = np.flatnonzero((met.partner != ABSENT) & ~met.doubtful[met.of[1]])
    falls = np.diff(met.partner[there]) < 0
    found[met.of[1][there[1:][falls]]] = True
    return found


def _reworded(grid: Grid, met: _Met, groups: I64) -> Flags:
    """Blocks in which both sides have lines of a group alone."""
    codes = []
    for side, alone in enumerate((met.alone, met.partner == ABSENT)):
        own = groups[grid.key[side][met.at[side][alone]]]
        codes.append(met.of[side][alone] * (int(groups.max(initial=0)) + 1) + own)
    found = np.zeros(len(met.doubtful), np.bool_)
    if len(codes[0]) and len(codes[1]):
        found[met.of[0][met.alone][np.isin(codes[0], codes[1])]] = True
    return found


def _places(partner: I64, first: I64, second: I64, blocks: int) -> tuple[I64, I64]:
    """Where each line of the two sides stands in the merge: before the next pair, if it is alone."""
    ends = np.searchsorted(first, np.arange(blocks), side="right")
    alone = partner == ABSENT
    # the next pair of its block, else the end of the first side's lines there
    anchor = np.where(alone, ends[second], partner)
    anchor = np.minimum.accumulate(anchor[::-1])[::-1]
    own = anchor[alone]
    place = np.arange(len(first)) + np.searchsorted(own, np.arange(len(first)), side="right")
    found = np.empty(len(second), np.int64)
    found[~alone] = place[partner[~alone]]
    found[alone] = own + np.arange(len(own))
    return place, found
