"""What few ranks say over all of an attempt and their peers do not, and the reverse.

Shapes: R ranks, K keys; `counts` [R, K] lines. A rank's peers are those of its place in the dimension
under which a key is said most evenly: all ranks, or those of its pipeline stage, and so on.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ranklog.limits import SECOND_NS
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
# What peers say after a rank's last line is half told by its silence.
_OVER = 0.5
# An error after which its rank went on like the others is one that it could live with.
_SURVIVED = 0.2
_WENT_ON_ITERATIONS = 3
_WENT_ON_LINES = 3
# Clocks of hosts differ; and the last words of all ranks are said within some seconds.
_SKEW_NS, _AGAIN_NS = 5 * SECOND_NS, 20 * SECOND_NS
# Numbers that are no iterations span more.
_ITERATIONS_MAX = 20_000_000


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
        over = survived.is_over(key, place)
        weight = _DELETE_WEIGHTS[level] * factor * (_OVER if over else 1.0)
        yield Evidence(DELETE, attempt.rank(place), weight, key, got=0)


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
        self._last_ns = attempt.latest(table.ts_ns)
        self._until: int | None = None
        self._times: I64 | None = None
        known = table.iteration[table.iteration >= 0]
        self._span = int(known.max()) - int(known.min()) + 1 if len(known) else 0

    def rows(self, key: int, place: int | None = None) -> I64:
        """Lines of a key, of one rank."""
        rows = self._order[self._starts[key] : self._starts[key + 1]]
        return rows if place is None else rows[self._attempt.place[rows] == place]

    def is_steady(self, key: int, said: Flags) -> bool:
        """Whether it is said all along, at most iterations."""
        found = self._attempt.table.iteration[self.rows(key)]
        found = found[found >= 0]
        return self._span > 4 and len(np.unique(found)) >= _STEADY_SHARE * self._span

    def went_on(self, key: int, place: int) -> bool:
        """Whether the job went on after the rank said so: by iterations, or by what is said again."""
        if self._attempt.rank(place) in self._attempt.ended_well:
            return True
        said_ns = int(self._attempt.table.ts_ns[self.rows(key, place)].max())
        if int((self._begun() > said_ns).sum()) >= _WENT_ON_ITERATIONS:
            return True
        return said_ns + _SKEW_NS < self._repeated_until()

    def _repeated_until(self) -> int:
        """Until when lines below WARNING were said that had been said well before: the last but two."""
        if self._until is None:
            table = self._attempt.table
            first = np.full(len(table.keys), 2**63 - 1)
            np.minimum.at(first, table.key, table.ts_ns)
            again = (table.level < WARNING) & (table.ts_ns - _AGAIN_NS > first[table.key])
            times = table.ts_ns[again]
            enough = len(times) >= _WENT_ON_LINES
            self._until = (
                int(np.partition(times, -_WENT_ON_LINES)[-_WENT_ON_LINES]) if enough else 0
            )
        return self._until

    def _begun(self) -> I64:
        """Times at which anybody began an iteration."""
        if self._times is None:
            table = self._attempt.table
            steps = table.iteration >= 0
            iteration = table.iteration[steps]
            lowest = int(iteration.min(initial=0))
            first = np.full(int(iteration.max(initial=-1)) - lowest + 1, 2**63 - 1)
            if len(first) <= _ITERATIONS_MAX:
                np.minimum.at(first, iteration - lowest, table.ts_ns[steps])
            self._times = first[first < 2**63 - 1]
        return self._times

    def is_over(self, key: int, place: int) -> bool:
        """Whether the rank had said its last before others said it."""
        return int(self._attempt.table.ts_ns[self.rows(key)].min()) > int(self._last_ns[place])
