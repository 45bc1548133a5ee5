"""Iterations at which a rank says a thing more or less often than its peers.

Only of keys that are regular: three ranks in four say them equally often at nearly every iteration.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from ranklog.spmd.outliers.consensus import PEERS_MIN, most_deviants
from ranklog.spmd.outliers.evidence import CHANGE, DELETE, INSERT, Attempt, Evidence
from ranklog.spmd.outliers.roles import Roles
from ranklog.spmd.table import I64, Flags

# A key whose cells agree less often has no rhythm.
REGULAR_SHARE = 0.98
_RANKS_SHARE = 0.75
_CELL_WEIGHT = 0.15
_NAN_WEIGHT = 0.6
_CELLS_PER_KEY_MAX = 64
_ITERATIONS_MIN = 3
_MATRIX_CELLS_MAX = 50_000_000
_NAN = re.compile(r"(?<![A-Za-z0-9_])[+-]?(?:nan|inf)(?![A-Za-z0-9_])", re.IGNORECASE)


def beats(attempt: Attempt) -> Iterator[Evidence]:
    """Deviating cells of (rank, iteration) per key, the first ones of each key."""
    table = attempt.table
    stepping = table.iteration >= 0
    if not stepping.any():
        return
    rows = np.flatnonzero(stepping)
    keys = table.key[rows]
    order = np.argsort(keys.astype(np.uint16) if len(table.keys) < 2**16 else keys, kind="stable")
    rows, keys = rows[order], keys[order]
    edges = np.flatnonzero(np.diff(keys, prepend=-1, append=-1))
    roles = Roles(attempt.topology)
    lasts = attempt.latest(table.iteration, -1)
    for start, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        if end - start >= PEERS_MIN:
            yield from _of_key(attempt, int(keys[start]), rows[start:end], roles, lasts)


def _of_key(attempt: Attempt, key: int, rows: I64, roles: Roles, lasts: I64) -> Iterator[Evidence]:
    table = attempt.table
    template = table.keys[key].template
    if not template.strip() or template[0].isspace():
        return
    place, iteration = attempt.place[rows], table.iteration[rows]
    lowest = int(iteration.min())
    width = int(iteration.max()) - lowest + 1
    saying = np.zeros(attempt.count, np.bool_)
    saying[place] = True
    is_nan = _NAN.search(template) is not None
    if is_nan:
        saying = lasts >= 0
    peers = np.flatnonzero(saying)
    if len(peers) < PEERS_MIN or len(peers) * width > _MATRIX_CELLS_MAX:
        return
    column = np.full(attempt.count, -1, np.int64)
    column[peers] = np.arange(len(peers))
    cells = np.bincount(
        column[place] * width + (iteration - lowest), minlength=len(peers) * width
    ).reshape(len(peers), width)
    said = cells.any(axis=0)
    if said.sum() < (1 if is_nan else _ITERATIONS_MIN):
        return
    numbers = np.flatnonzero(said) + lowest
    cells = cells[:, said]
    # what a rank no longer reached is its silence, not a hole; the last may be half written
    reached = lasts[peers][:, None] > numbers
    usual = np.median(cells, axis=0).astype(np.int64)
    off = (cells != usual) & (reached | (cells > usual))
    if np.quantile(off.mean(axis=1), _RANKS_SHARE) > 1 - REGULAR_SHARE and not is_nan:
        return
    yield from _cells(attempt, key, off, cells, usual, numbers, peers, roles, is_nan=is_nan)


def _cells(
    attempt: Attempt,
    key: int,
    off: Flags,
    cells: I64,
    usual: I64,
    numbers: I64,
    peers: I64,
    roles: Roles,
    *,
    is_nan: bool,
) -> Iterator[Evidence]:
    told = 0
    for at in np.flatnonzero(off.any(axis=0)).tolist():
        odd = np.flatnonzero(off[:, at])
        flags = np.zeros(attempt.count, np.bool_)
        flags[peers[odd]] = True
        few = len(odd) <= most_deviants(len(peers))
        if not few or (roles.has(flags) and len(odd) > 1):
            continue
        for i in odd.tolist():
            got, expected = int(cells[i, at]), int(usual[at])
            kind = CHANGE if is_nan else INSERT if got > expected else DELETE
            weight = _NAN_WEIGHT if is_nan else _CELL_WEIGHT
            weight *= len(odd) ** -0.5
            rank = attempt.rank(int(peers[i]))
            where = int(numbers[at])
            yield Evidence(kind, rank, weight, key, where, expected=expected, got=got)
            told += 1
        if is_nan or told >= _CELLS_PER_KEY_MAX:
            return  # NaN spreads: who had it first says all
