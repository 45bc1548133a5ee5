"""What few ranks say over all of an attempt and their peers do not, and the reverse.

Shapes: R ranks, K keys; `counts` [R, K] lines. A rank's peers are those of its place in the dimension
under which a key is said most evenly: all ranks, or those of its pipeline stage, and so on.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ranklog.model.levels import ERROR, WARNING
from ranklog.spmd.outliers.evidence import DELETE, INSERT, Attempt, Evidence
from ranklog.spmd.outliers.roles import Roles
from ranklog.spmd.table import I64, Flags

# A larger share of peers that deviates is no outlier but noise, or another program.
DEVIANTS_SHARE_MAX = 0.25
# Fewer peers are no consensus.
PEERS_MIN = 3
# [R, K] up to so many cells is counted at once.
_CELLS_MAX = 25_000_000
# What is said at this share of all iterations is a job that a rank has, not an event.
_STEADY_SHARE = 0.5
# Keys that one attempt is looked at for, those with errors first: the rest is unlike everywhere.
_KEYS_MAX = 20_000

_INSERT_WEIGHTS = {ERROR: 0.55, WARNING: 0.1, 0: 0.04}
_DELETE_WEIGHTS = {ERROR: 0.35, WARNING: 0.1, 0: 0.12}
# An error after which its rank went on like the others is one that it could live with.
_SURVIVED = 0.2
_WENT_ON_ITERATIONS = 3
_WENT_ON_LINES = 3


def totals(attempt: Attempt) -> Iterator[Evidence]:
    """Insertions and deletions by what is said at all."""
    table = attempt.table
    if attempt.speaking.sum() < PEERS_MIN or not len(table):
        return
    keys = np.arange(len(table.keys))
    levels = _key_levels(attempt)
    if len(keys) * attempt.count > _CELLS_MAX or len(keys) > _KEYS_MAX:
        order = np.argsort(-levels, kind="stable")
        most = min(_KEYS_MAX, max(1, _CELLS_MAX // attempt.count))
        keys = np.sort(order[:most])
    counts = _counts(attempt, keys)
    said = counts > 0
    sayers = said.sum(axis=0)
    everyone = int(attempt.speaking.sum())
    roles = Roles(attempt.topology)
    survived = _Survival(attempt)
    for column in np.flatnonzero((sayers > 0) & (sayers < everyone)).tolist():
        key = int(keys[column])
        template = table.keys[key].template
        if not template.strip() or template[0].isspace():
            continue
        yield from _of_key(attempt, key, said[:, column], int(levels[key]), roles, survived)


def _counts(attempt: Attempt, keys: I64) -> I64:
    column = np.full(len(attempt.table.keys), -1, np.int64)
    column[keys] = np.arange(len(keys))
    at = column[attempt.table.key]
    place = attempt.place
    if (at < 0).any():
        place, at = place[at >= 0], at[at >= 0]
    cells = np.bincount(place * np.int64(len(keys)) + at, minlength=attempt.count * len(keys))
    return cells.reshape(attempt.count, len(keys))


def _key_levels(attempt: Attempt) -> I64:
    """ERROR, WARNING or 0 of each key: what most of its lines are."""
    table = attempt.table
    count = len(table.keys)
    lines = np.bincount(table.key, minlength=count)
    levels = np.zeros(count, np.int64)
    for level in (WARNING, ERROR):
        at_least = np.bincount(table.key[table.level >= level], minlength=count)
        levels[2 * at_least > lines] = level
    return levels


def _of_key(
    attempt: Attempt, key: int, said: Flags, level: int, roles: Roles, survived: _Survival
) -> Iterator[Evidence]:
    speaking = attempt.speaking
    inserts, deletes = _deviants(attempt, said)
    deviants = inserts | deletes
    count = int(deviants.sum())
    if not count or count > DEVIANTS_SHARE_MAX * speaking.sum():
        return
    if level < ERROR and (roles.has(said) or survived.is_steady(key, said)):
        return
    factor = 1.0 if _is_group(attempt, deviants) else count**-0.5
    for place in np.flatnonzero(inserts).tolist():
        after = survived.went_on(key, place)
        weight = _INSERT_WEIGHTS[level] * factor * (_SURVIVED if after else 1.0)
        yield Evidence(INSERT, attempt.rank(place), weight, key, expected=0)
    if roles.has(said):
        return
    for place in np.flatnonzero(deletes).tolist():
        if survived.is_over(key, place):
            continue  # it had gone: its silence tells
        yield Evidence(DELETE, attempt.rank(place), _DELETE_WEIGHTS[level] * factor, key, got=0)


def _deviants(attempt: Attempt, said: Flags) -> tuple[Flags, Flags]:
    """(ranks that say what their peers do not, ranks that do not say what their peers say), under the
    dimension with the fewest of them."""
    speaking = attempt.speaking
    best = _minorities(said, [speaking])
    for name in attempt.topology.parallel:
        classes = [members & speaking for members in attempt.topology.classes(name)]
        classes = [members for members in classes if members.any()]
        if any(members.sum() < PEERS_MIN for members in classes):
            continue
        found = _minorities(said, classes)
        if _size(found) < _size(best):
            best = found
    return best


def _size(pair: tuple[Flags, Flags]) -> int:
    return int(pair[0].sum() + pair[1].sum())


def _minorities(said: Flags, classes: list[Flags]) -> tuple[Flags, Flags]:
    inserts, deletes = np.zeros_like(said), np.zeros_like(said)
    for members in classes:
        saying = members & said
        if 2 * saying.sum() <= members.sum():
            inserts |= saying
        else:
            deletes |= members & ~said
    return inserts, deletes


def _is_group(attempt: Attempt, deviants: Flags) -> bool:
    if deviants.sum() == 1:
        return True
    group = attempt.topology.explain(attempt.rank(p) for p in np.flatnonzero(deviants).tolist())
    return group is not None and not group.exceptions and not group.others


class _Survival:
    """What came after: lines are sorted by key once, so that one key's are at hand."""

    def __init__(self, attempt: Attempt) -> None:
        table = attempt.table
        self._attempt = attempt
        keys = table.key.astype(np.uint16) if len(table.keys) < 2**16 else table.key
        self._order = np.argsort(keys, kind="stable")
        lines = np.bincount(table.key, minlength=len(table.keys))
        self._starts = np.concatenate([[0], np.cumsum(lines)])
        self._last_iteration = attempt.latest(table.iteration)
        self._last_ns = attempt.latest(table.ts_ns)
        self._first_ns: I64 | None = None
        self._times: dict[int | None, I64] = {}
        most = int(self._last_iteration.max(initial=0))
        self._first, self._most = self._extent(most)

    def _extent(self, most: int) -> tuple[int, int]:
        known = self._attempt.table.iteration
        known = known[known >= 0]
        return (int(known.min()), most) if len(known) else (0, 0)

    def rows(self, key: int, place: int | None = None) -> I64:
        """Lines of a key, of one rank."""
        rows = self._order[self._starts[key] : self._starts[key + 1]]
        return rows if place is None else rows[self._attempt.place[rows] == place]

    def is_steady(self, key: int, said: Flags) -> bool:
        """Whether it is said all along, at most iterations."""
        found = self._attempt.table.iteration[self.rows(key)]
        found = found[found >= 0]
        span = self._most - self._first + 1
        return len(found) > 0 and span > 4 and len(np.unique(found)) >= _STEADY_SHARE * span

    def went_on(self, key: int, place: int) -> bool:
        """Whether the rank, or where it names no iterations its peers, went on after it said so."""
        if self._attempt.rank(place) in self._attempt.ended_well:
            return True
        said_ns = int(self._attempt.table.ts_ns[self.rows(key, place)].max())
        if self._most == self._first:
            return self._known_after(said_ns) >= _WENT_ON_LINES
        own = self._last_iteration[place] >= 0
        begun = self._begun(place if own else None)
        return int((begun > said_ns).sum()) >= _WENT_ON_ITERATIONS

    def _known_after(self, said_ns: int) -> int:
        """Where nobody counts iterations: later lines below WARNING of keys that were said before."""
        table = self._attempt.table
        if self._first_ns is None:
            self._first_ns = np.full(len(table.keys), 2**63 - 1)
            np.minimum.at(self._first_ns, table.key, table.ts_ns)
        later = (table.ts_ns > said_ns) & (table.level < WARNING)
        return int((self._first_ns[table.key[later]] < said_ns).sum())

    def _begun(self, place: int | None) -> I64:
        """Times at which a rank, or anybody, began an iteration."""
        if place not in self._times:
            table = self._attempt.table
            steps = table.iteration >= 0
            rows = np.flatnonzero(
                steps if place is None else steps & (self._attempt.place == place)
            )
            rows = rows[np.argsort(table.ts_ns[rows], kind="stable")]
            _, first = np.unique(table.iteration[rows], return_index=True)
            self._times[place] = table.ts_ns[rows[first]]
        return self._times[place]

    def is_over(self, key: int, place: int) -> bool:
        """Whether the rank had said its last before others said it."""
        return int(self._attempt.table.ts_ns[self.rows(key)].min()) > int(self._last_ns[place])
