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
from ranklog.spmd.outliers.survival import Survival
from ranklog.spmd.table import I64, Flags

# A larger share of peers that deviates is no outlier but noise, or another program.
DEVIANTS_SHARE_MAX = 0.25
# Fewer peers are no consensus.
PEERS_MIN = 3
# [R, K] up to so many cells is counted at once.
_CELLS_MAX = 25_000_000
# Keys that one attempt is looked at for, those with errors first: the rest is unlike everywhere.
_KEYS_MAX = 20_000

_INSERT_WEIGHTS = {ERROR: 0.55, WARNING: 0.1, 0: 0.04}
_DELETE_WEIGHTS = {ERROR: 0.35, WARNING: 0.1, 0: 0.12}
# What peers say after a rank's last line is half told by its silence.
_OVER = 0.5
# An error after which its rank went on like the others is one that it could live with.
_SURVIVED = 0.2


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
    survived = Survival(attempt)
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
    attempt: Attempt, key: int, said: Flags, level: int, roles: Roles, survived: Survival
) -> Iterator[Evidence]:
    speaking = attempt.speaking
    inserts, deletes = _deviants(attempt, said)
    deviants = inserts | deletes
    count = int(deviants.sum())
    if not count or count > most_deviants(int(speaking.sum())):
        return
    if level < ERROR and (roles.has(said) or survived.is_steady(key, said)):
        return
    # to look for a group costs, and what is no error weighs little in any case
    grouped = count == 1 or (level >= ERROR and _is_group(attempt, deviants))
    factor = 1.0 if grouped else count**-0.5
    for place in np.flatnonzero(inserts).tolist():
        after = survived.is_handled(key, place) or survived.went_on(key, place)
        weight = _INSERT_WEIGHTS[level] * factor * (_SURVIVED if after else 1.0)
        last_ns = int(attempt.table.ts_ns[survived.rows(key, place)].max())
        yield Evidence(INSERT, attempt.rank(place), weight, key, ts_ns=last_ns, expected=0)
    if roles.has(said):
        return
    for place in np.flatnonzero(deletes).tolist():
        over = survived.is_over(key, place)
        weight = _DELETE_WEIGHTS[level] * factor * (_OVER if over else 1.0)
        said_ns = int(np.median(attempt.table.ts_ns[survived.rows(key)]))
        yield Evidence(DELETE, attempt.rank(place), weight, key, ts_ns=said_ns, got=0)


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


def most_deviants(peers: int) -> float:
    """So many of these ranks may deviate and be outliers; one always may."""
    return max(1.0, DEVIANTS_SHARE_MAX * peers)


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
    group = attempt.topology.explain(attempt.rank(p) for p in np.flatnonzero(deviants).tolist())
    return group is not None and not group.exceptions and not group.others
