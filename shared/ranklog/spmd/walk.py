"""Two sides or more of millions of lines, next to each other: which lines stand at one place.

What is aligned is a block's sequences of keys. Iterations mostly repeat each other: blocks whose sides
say the same are taken as they are, and of the others each distinct set of sequences is aligned once
(spmd/align) and laid over all blocks that have it. Only what depends on times is looked at block by
block: what is outside of iterations, and iterations that a clock drew.

Shapes: m places, S sides; `rows` I64[m, S] lines of each side, ABSENT where it says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from ranklog.spmd.align import align
from ranklog.spmd.changes import words_alike
from ranklog.spmd.columns import Column, Keyed, has_iteration, place_columns
from ranklog.spmd.grid import MIX, PRIME, U64, Grid, hash_sequences, make_grid
from ranklog.spmd.in_order import merge_in_order
from ranklog.spmd.slots import Slot, Waiting, pair_alike
from ranklog.spmd.table import ABSENT, I64, Flags


@dataclass(frozen=True, slots=True)
class Walk:
    """Places in order. `code` I64[m]: their blocks; `moved`, `words` Flags[m] as in slots.Slot."""

    rows: I64
    code: I64
    moved: Flags
    words: Flags


@dataclass(frozen=True, slots=True)
class At:
    """A line of a side that waits for a partner; `ts_ns` where times decide."""

    row: int
    ts_ns: int = 0


def walk(
    columns: Sequence[Column],
    keys: Sequence[Keyed],
    *,
    origins: Sequence[int],
    window_ns: int,
) -> Walk:
    """Places of all blocks in order. `origins`: when each side's clock begins."""
    placed = place_columns(columns, origins)
    grid = make_grid(columns, placed)
    hashes = hash_sequences(grid)
    timed = np.array([not has_iteration(code) for code in grid.codes.tolist()], np.bool_)
    loose = np.isin(grid.codes, np.concatenate([one.loose for one in placed]))
    same = (hashes == hashes[0]).all(axis=0) & (grid.length == grid.length[0]).all(axis=0)
    pairing = _Pairing(keys)
    blocks = _Blocks(grid, pairing)
    blocks.add_same(np.flatnonzero(same & ~timed))
    blocks.add_patterns(blocks.add_in_order(np.flatnonzero(~same & ~timed & ~loose)), hashes)
    by_time = np.flatnonzero(timed | (~same & loose)).tolist()
    slots = [
        (at, _timed_block(grid, at, columns, origins, None if not timed[at] else window_ns))
        for at in by_time
    ]
    _join_neighbours(
        [(at, found) for at, found in slots if loose[at]],
        np.flatnonzero(same & loose & ~timed),
        origins,
        window_ns,
    )
    for at, found in slots:
        pairing.pair(found)
        blocks.add_slots(at, found)
    return blocks.walk()


class _Pairing:
    """Pairs lines of one call site whose words mostly agree: `dtype bf16` and `dtype float`."""

    def __init__(self, keys: Sequence[Keyed]) -> None:
        self._keys = keys
        self._words: dict[int, list[str]] = {}

    def _of(self, key: int) -> list[str]:
        words = self._words.get(key)
        if words is None:
            words = self._words[key] = self._keys[key].shape.split()
        return words

    def groups(self) -> I64:
        """I64[keys]: only keys of one group are ever paired."""
        known: dict[tuple[str | None, int | None, int], int] = {}
        own = [known.setdefault(self._group(key), len(known)) for key in range(len(self._keys))]
        return np.array(own, np.int64)

    def _group(self, key: int) -> tuple[str | None, int | None, int]:
        keyed = self._keys[key]
        return keyed.call_site, keyed.level, len(self._of(key))

    def pair(self, slots: list[Slot[At]]) -> None:
        """Join slots in place; see spmd/compare."""
        pair_alike(
            slots,
            lambda slot: self._group(slot.key),
            lambda slot, other: words_alike(self._of(slot.key), self._of(other.key)),
        )


def aligned(
    sequences: Sequence[Sequence[int]],
    lines: Sequence[Sequence[At]],
    *,
    times: Sequence[Sequence[int]] | None = None,
    within_ns: int | None = None,
    origins: Sequence[int] = (),
) -> list[Slot[At]]:
    """Align one block, then let lines of one key meet that only stand in another order."""
    slots: list[Slot[At]] = []
    for row in align(sequences, times, within_ns or 0):
        there = [found[at] if at >= 0 else None for found, at in zip(lines, row, strict=True)]
        side = next(side for side, at in enumerate(row) if at >= 0)
        slots.append(Slot(sequences[side][row[side]], there))
    waiting: Waiting[At] = Waiting(within_ns=within_ns, origins=origins)
    for slot in slots:
        if slot.missing:
            waiting.meet_or_wait(slot, moved=True)
    return [slot for slot in slots if any(slot.lines)]


def _timed_block(
    grid: Grid,
    block: int,
    columns: Sequence[Column],
    origins: Sequence[int],
    within_ns: int | None,
) -> list[Slot[At]]:
    """A block whose lines have to be looked at with their times."""
    lines = [
        [At(row, ts) for row, ts in zip(rows, column.ts_ns[rows].tolist(), strict=True)]
        for rows, column in zip(grid.lines(block), columns, strict=True)
    ]
    times = None
    if within_ns is not None:
        times = [
            list(accumulate((line.ts_ns - origin for line in found), max))
            for found, origin in zip(lines, origins, strict=True)
        ]
    return aligned(grid.sequences(block), lines, times=times, within_ns=within_ns, origins=origins)


def _join_neighbours(
    blocks: Sequence[tuple[int, list[Slot[At]]]],
    whole: I64,
    origins: Sequence[int],
    window_ns: int,
) -> None:
    """Let lines meet across an edge that only a clock drew: what one said just before, one after.
    `whole`: blocks between, in which nobody waits."""
    waiting: Waiting[At] = Waiting(within_ns=window_ns, origins=origins)
    before = -1
    for at, slots in blocks:
        if np.searchsorted(whole, at) > np.searchsorted(whole, before):
            waiting = Waiting(within_ns=window_ns, origins=origins)
        before = at
        fresh: Waiting[At] = Waiting(within_ns=window_ns, origins=origins)
        for slot in slots:
            if slot.missing and not waiting.meet(slot):
                fresh.wait(slot)
        waiting = fresh
        slots[:] = [slot for slot in slots if any(slot.lines)]


class _Blocks:
    """Gathers places of blocks in any order, and gives them out in the walk's."""

    def __init__(self, grid: Grid, pairing: _Pairing) -> None:
        self._grid = grid
        self._pairing = pairing
        self._parts: list[
            tuple[I64, I64, Flags, Flags]
        ] = []  # block of each place, rows, moved, words

    def _add(self, block: I64, rows: I64, moved: Flags, words: Flags) -> None:
        self._parts.append((block, rows, moved, words))

    def add_same(self, blocks: I64) -> None:
        """Blocks whose sides say the same: the k-th line of each is one place."""
        of, _ = self._grid.spans(0, blocks)
        spans = (self._grid.spans(side, blocks)[1] for side in range(len(self._grid.order)))
        rows = np.stack([o[at] for o, at in zip(self._grid.order, spans, strict=True)], axis=1)
        none = np.zeros(len(of), np.bool_)
        self._add(blocks[of], rows, none, none)

    def add_in_order(self, blocks: I64) -> I64:
        """Blocks of two sides that differ only by what one says alone; those that are left."""
        if len(self._grid.order) != 2 or not len(blocks):
            return blocks
        done, block, rows = merge_in_order(self._grid, blocks, self._pairing.groups())
        none = np.zeros(len(block), np.bool_)
        self._add(block, rows, none, none)
        return blocks[~done]

    def add_patterns(self, blocks: I64, hashes: U64) -> None:
        """Blocks whose sides differ: each distinct set of sequences is aligned once."""
        if not len(blocks):
            return
        mixed = np.zeros(len(blocks), np.uint64)
        for side in range(len(hashes)):
            mixed = (mixed ^ (mixed >> np.uint64(31))) * MIX + hashes[side, blocks]
            mixed = mixed * PRIME + self._grid.length[side, blocks].astype(np.uint64)
        by = np.argsort(mixed, kind="stable")
        edges = np.flatnonzero(np.diff(mixed[by])) + 1
        for alike in np.split(blocks[by], edges):
            self._add_pattern(alike)

    def _add_pattern(self, blocks: I64) -> None:
        grid = self._grid
        sequences = grid.sequences(int(blocks[0]))
        slots = aligned(sequences, [list(map(At, range(len(one)))) for one in sequences])
        self._pairing.pair(slots)
        place, moved, words = _arrays(slots, len(sequences))
        rows = np.empty((len(blocks), len(slots), len(sequences)), np.int64)
        for side, order in enumerate(grid.order):
            at = grid.start[side, blocks][:, None] + np.maximum(place[:, side], 0)
            there = order[np.minimum(at, len(order) - 1)] if len(order) else at
            rows[:, :, side] = np.where(place[:, side] >= 0, there, ABSENT)
        count = len(blocks)
        self._add(
            np.repeat(blocks, len(slots)),
            rows.reshape(-1, len(sequences)),
            np.tile(moved, count),
            np.tile(words, count),
        )

    def add_slots(self, block: int, slots: Sequence[Slot[At]]) -> None:
        """One block, of slots that hold its lines."""
        rows, moved, words = _arrays(slots, len(self._grid.order))
        self._add(np.full(len(slots), block), rows, moved, words)

    def walk(self) -> Walk:
        """Everything, by block; within a block as it was added."""
        block, rows, moved, words = (
            np.concatenate([part[i] for part in self._parts]) for i in range(4)
        )
        by = np.argsort(block, kind="stable")
        return Walk(rows[by], self._grid.codes[block[by]], moved[by], words[by])


def _arrays(slots: Sequence[Slot[At]], sides: int) -> tuple[I64, Flags, Flags]:
    rows = np.array(
        [[ABSENT if line is None else line.row for line in slot.lines] for slot in slots], np.int64
    ).reshape(-1, sides)
    moved = np.array([slot.moved for slot in slots], np.bool_)
    return rows, moved, np.array([slot.words for slot in slots], np.bool_)
