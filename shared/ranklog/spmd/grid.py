"""Lines of compared sides by block: what each side says in a block is a span of one sorted column.

Shapes: S sides; n lines of a side; B blocks in the order of a walk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ranklog.spmd.columns import Column, PlacedColumn
from ranklog.spmd.table import I32, I64

U64 = npt.NDArray[np.uint64]
PRIME, MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)


@dataclass(frozen=True, slots=True)
class Grid:
    """`codes` I64[B]; `order[s]` I64[n]: side s's lines by block, `key[s]` their keys; `start`, `length`
    I64[S, B]: spans of them."""

    codes: I64
    order: list[I64]
    start: I64
    length: I64
    key: list[I32]

    def sequences(self, block: int) -> list[list[int]]:
        """Keys of each side."""
        spans = zip(self.start[:, block].tolist(), self.length[:, block].tolist(), strict=True)
        return [k[a : a + n].tolist() for k, (a, n) in zip(self.key, spans, strict=True)]

    def lines(self, block: int) -> list[list[int]]:
        """Lines of each side."""
        spans = zip(self.start[:, block].tolist(), self.length[:, block].tolist(), strict=True)
        return [o[a : a + n].tolist() for o, (a, n) in zip(self.order, spans, strict=True)]

    def spans(self, side: int, blocks: I64) -> tuple[I64, I64]:
        """Lines of a side in some blocks: (which of `blocks`, place in `order[side]`), in order."""
        length = self.length[side, blocks]
        of = np.repeat(np.arange(len(blocks)), length)
        within = np.arange(len(of)) - np.repeat(np.cumsum(length) - length, length)
        return of, np.repeat(self.start[side, blocks], length) + within


def make_grid(columns: Sequence[Column], placed: Sequence[PlacedColumn]) -> Grid:
    """Sort each side by block, lines of a block in their own order."""
    order, sorted_codes = [], []
    for one in placed:
        ascending = bool((one.code[1:] >= one.code[:-1]).all())
        by = np.arange(len(one.code)) if ascending else np.argsort(one.code, kind="stable")
        order.append(by)
        sorted_codes.append(one.code[by])
    codes = np.unique(np.concatenate([np.unique(code) for code in sorted_codes]))
    start = np.array([np.searchsorted(code, codes) for code in sorted_codes])
    end = np.array([np.searchsorted(code, codes, side="right") for code in sorted_codes])
    key = [column.key[by] for column, by in zip(columns, order, strict=True)]
    return Grid(codes, order, start, end - start, key)


def hash_sequences(grid: Grid) -> U64:
    """uint64[S, B]: of each side's keys in a block, the same for the same sequence."""
    found = np.zeros(grid.start.shape, np.uint64)
    powers = np.cumprod(np.full(int(grid.length.max(initial=0)) + 1, PRIME))
    for side, key in enumerate(grid.key):
        there = np.flatnonzero(grid.length[side])
        starts, lengths = grid.start[side, there], grid.length[side, there]
        if len(there):
            place = np.arange(len(key)) - np.repeat(starts, lengths)
            mixed = (key.astype(np.uint64) + np.uint64(1)) * MIX
            mixed ^= mixed >> np.uint64(29)
            found[side, there] = np.add.reduceat(mixed * powers[place], starts)
    return found
