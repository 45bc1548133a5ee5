"""Where ranks stand: host, local rank, and places in tensor, pipeline, data parallel groups.

Shapes: R ranks, ascending; a dimension has one place per rank, -1 where nobody knows. A *class* is the
ranks of one place; a *group* of a dimension the ranks that differ in nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from ranklog.spmd.table import ABSENT, I32, Flags

NODE, LOCAL = "node", "local_rank"


@dataclass(frozen=True, slots=True)
class Group:
    """What a set of ranks has in common. `exceptions`: ranks of it that are not in the set;
    `others`: ranks in the set that are not of it."""

    name: str
    ranks: tuple[int, ...]
    exceptions: tuple[int, ...] = ()
    others: tuple[int, ...] = ()


@dataclass(slots=True)
class Topology:
    """`places`: dimension -> I32[R]; `hosts`: names of the places of `node`."""

    ranks: tuple[int, ...]
    places: dict[str, I32] = field(default_factory=dict)
    hosts: tuple[str, ...] = ()
    _groups: list[tuple[str, Flags]] = field(default_factory=list, repr=False)

    @property
    def parallel(self) -> tuple[str, ...]:
        """Declared dimensions with more than one place."""
        names = (name for name in self.places if name not in (NODE, LOCAL))
        return tuple(name for name in names if len(set(self.places[name].tolist())) > 1)

    def classes(self, name: str) -> list[Flags]:
        """Ranks of each place of a dimension."""
        places = self.places[name]
        return [places == place for place in np.unique(places[places != ABSENT])]

    def explain(self, odd: Iterable[int]) -> Group | None:
        """The smallest group that covers a set of at least two ranks; None where none fits.

        Ranks that do not fit count: a group is no explanation unless it costs less than naming ranks.
        """
        chosen = set(odd)
        flags = np.array([rank in chosen for rank in self.ranks], np.bool_)
        count = int(flags.sum())
        if count < 2:
            return None
        best: tuple[int, int, str] | None = None
        found: Flags | None = None
        self._groups = self._groups or list(self._candidates())
        for name, members in self._groups:
            missing = int((members & ~flags).sum())
            outside = int((flags & ~members).sum())
            size = int(members.sum())
            cost = missing + 2 * outside
            if size < 2 or 2 * cost >= count:
                continue
            if best is None or (cost, size, name) < best:
                best, found = (cost, size, name), members
        if best is None or found is None:
            return None
        return Group(
            best[2],
            self._named(found),
            self._named(found & ~flags),
            self._named(flags & ~found),
        )

    def _named(self, flags: Flags) -> tuple[int, ...]:
        return tuple(self.ranks[at] for at in np.flatnonzero(flags).tolist())

    def _candidates(self) -> Iterator[tuple[str, Flags]]:
        yield "all", np.ones(len(self.ranks), np.bool_)
        if NODE in self.places:
            for place, members in enumerate(self.classes(NODE)):
                yield f"node {self.hosts[place]}", members
        for name in self.parallel:
            for place in np.unique(self.places[name]).tolist():
                if place != ABSENT:
                    yield f"{name}={place}", self.places[name] == place
        yield from self._communicators()
        if LOCAL in self.places and len(self.hosts) > 1:
            for place in np.unique(self.places[LOCAL]).tolist():
                if place != ABSENT:
                    yield f"{LOCAL}={place}", self.places[LOCAL] == place

    def _communicators(self) -> Iterator[tuple[str, Flags]]:
        """Groups that meet in one dimension's collectives: every other place is the same."""
        names = self.parallel
        if len(names) < 2:
            return
        for free in names:
            fixed = [name for name in names if name != free]
            kept = np.stack([self.places[name] for name in fixed])
            for corner in np.unique(kept, axis=1).T:
                at = ", ".join(f"{n}={p}" for n, p in zip(fixed, corner.tolist(), strict=True))
                yield f"{free} group at {at}", (kept == corner[:, None]).all(axis=0)


def make_topology(
    ranks: Iterable[int],
    *,
    hosts: Mapping[int, str | None],
    local_ranks: Mapping[int, int | None],
    groups: Mapping[int, Mapping[str, int]],
) -> Topology:
    """Of what is known of each rank; dimensions that nobody declares are left out."""
    order = tuple(sorted(set(ranks)))
    topology = Topology(order)
    names = sorted({host for rank in order if (host := hosts.get(rank))})
    if names:
        numbers = {host: at for at, host in enumerate(names)}
        topology.hosts = tuple(names)
        topology.places[NODE] = _column(numbers.get(hosts.get(r) or "", ABSENT) for r in order)
    local = _column(_or_absent(local_ranks.get(rank)) for rank in order)
    if (local != ABSENT).any():
        topology.places[LOCAL] = local
    for name in sorted({name for rank in order for name in groups.get(rank, {})}):
        topology.places[name] = _column(groups.get(r, {}).get(name, ABSENT) for r in order)
    return topology


def _column(values: Iterable[int]) -> I32:
    return np.fromiter(values, np.int32)


def _or_absent(value: int | None) -> int:
    return ABSENT if value is None else value
