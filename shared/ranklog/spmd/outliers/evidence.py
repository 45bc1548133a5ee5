"""One deviation of one rank, and what the analyses of an attempt have in common."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ranklog.spmd.table import ABSENT, I32, I64, Flags, LineTable
from ranklog.spmd.topology import Topology

INSERT, DELETE, CHANGE, SILENT, SLOW = "insert", "delete", "change", "silent", "slow"


@dataclass(frozen=True, slots=True)
class Evidence:
    """`weight` 0..1: how odd it is alone. `key` ABSENT: about all of a rank's lines. `expected`, `got`:
    counts, values or times, as the kind has them. `ids`: (stream id, seq) of lines that show it."""

    kind: str
    rank: int
    weight: float
    key: int = ABSENT
    iteration: int | None = None
    ts_ns: int | None = None
    expected: int | float | str | None = None
    got: int | float | str | None = None
    name: str | None = None
    ids: tuple[tuple[str, int], ...] = ()


@dataclass(slots=True)
class Attempt:
    """Lines of known ranks. `place` I32[n]: each line's rank as a place in `topology.ranks`; `lines`
    I64[R]; `speaking` Flags[R]: ranks that say anything; `ended_well`: ranks known to have exited 0."""

    table: LineTable
    topology: Topology
    ended_well: frozenset[int] = frozenset()
    place: I32 = field(init=False)
    lines: I64 = field(init=False)
    speaking: Flags = field(init=False)

    def __post_init__(self) -> None:
        ranks = np.array(self.topology.ranks, np.int64)
        most = int(ranks.max()) if len(ranks) else 0
        places = np.full(most + 1, ABSENT, np.int32)
        places[ranks] = np.arange(len(ranks), dtype=np.int32)
        own = self.table.rank
        known = (own >= 0) & (own <= most)
        place = np.where(known, places[np.clip(own, 0, most)], ABSENT)
        if (place == ABSENT).any():
            self.table = self.table.where(place != ABSENT)
            place = place[place != ABSENT]
        self.place = place.astype(np.int32)
        self.lines = np.bincount(self.place, minlength=len(ranks))
        self.speaking = self.lines > 0

    @property
    def count(self) -> int:
        """Ranks."""
        return len(self.topology.ranks)

    def rank(self, place: int) -> int:
        """The rank at a place."""
        return self.topology.ranks[place]

    def latest(self, values: I64, start: int = -(2**63)) -> I64:
        """The largest value of each rank's lines; `start` where it has none."""
        found = np.full(self.count, start, np.int64)
        np.maximum.at(found, self.place, values)
        return found
