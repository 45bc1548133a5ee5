"""Which sets of ranks say something because it is their part: rank 0, the last one, one of each host.

A set that is a corner of the topology (first or last places of some dimensions) has a role; what only
it says is no insertion of it, and what all but it say is no deletion.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from ranklog.spmd.table import ABSENT, I32, Flags
from ranklog.spmd.topology import LOCAL, NODE, Topology

# Dimensions that one corner may fix.
_FIXED_MAX = 4


class Roles:
    """Sets of ranks with a part of their own."""

    def __init__(self, topology: Topology) -> None:
        self._known = {corner.tobytes() for corner in _corners(topology)}

    def has(self, ranks: Flags) -> bool:
        """Whether just these ranks, or just the others, have a role."""
        return ranks.tobytes() in self._known or (~ranks).tobytes() in self._known


def _corners(topology: Topology) -> list[Flags]:
    count = len(topology.ranks)
    if count < 2:
        return []
    every = np.arange(count)
    found = [every == 0, every == count - 1, (every == 0) | (every == count - 1)]
    places = dict(topology.places)
    if NODE in places:
        first = _first_of_each(places[NODE])
        found += [first, _first_of_each(places[NODE][::-1])[::-1]]
    names = [name for name in (*topology.parallel, LOCAL) if name in places]
    ends = [(name, end) for name in names for end in {0, int(places[name].max())}]
    for size in range(1, min(_FIXED_MAX, len(names)) + 1):
        for fixed in combinations(ends, size):
            if len({name for name, _ in fixed}) == size:
                found.append(np.all([places[name] == end for name, end in fixed], axis=0))
    return [corner for corner in found if corner.any()]


def _first_of_each(places: I32) -> Flags:
    found = np.zeros(len(places), np.bool_)
    known = np.flatnonzero(places != ABSENT)
    _, first = np.unique(places[known], return_index=True)
    found[known[first]] = True
    return found
