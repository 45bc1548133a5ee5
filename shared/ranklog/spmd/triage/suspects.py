"""Who is suspected: a rank, some ranks, a host, or all of them alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ranklog.model.answer import Line
from ranklog.spmd.triage.places import Places


@dataclass(slots=True)
class Suspect:
    """`rank` for one; else `ranks`, "all" or several. `host` where it is a node's fault, or where the
    ranks sit. `node`: the host as a whole. `score` in 0..1."""

    score: float
    why: str
    rank: int | None = None
    ranks: frozenset[int] | str | None = None
    host: str | None = None
    node: bool = False
    lines: Sequence[Line] = field(default_factory=list)

    @property
    def is_named(self) -> bool:
        """Whether it blames somebody."""
        return self.node or self.rank is not None or bool(self.ranks)

    @property
    def name(self) -> str:
        """For people."""
        if self.node:
            return f"host {self.host}"
        if self.rank is not None:
            return f"rank {self.rank}" + (f" on {self.host}" if self.host else "")
        if self.ranks == "all":
            return "all ranks alike"
        if not self.ranks:
            return "nobody whom these logs name"
        assert not isinstance(self.ranks, str)
        return "ranks " + ",".join(map(str, sorted(self.ranks or ())))


def everybody(score: float, why: str, lines: Sequence[Line]) -> Suspect:
    """The same fault on every rank is no rank's fault."""
    return Suspect(score, why, ranks="all", lines=lines)


def of_ranks(
    places: Places, ranks: Iterable[int], score: float, why: str, lines: Sequence[Line]
) -> Suspect:
    """One rank, a whole host where they are its ranks, or a set."""
    wanted = frozenset(ranks)
    if len(wanted) == 1:
        (rank,) = wanted
        return Suspect(score, why, rank=rank, host=places.hosts.get(rank), lines=lines)
    host = places.whole_host(wanted)
    if host is not None:
        return Suspect(score, why, ranks=wanted, host=host, node=True, lines=lines)
    return Suspect(score, why, ranks=wanted, host=places.host_of(wanted), lines=lines)


def of_host(places: Places, host: str, score: float, why: str, lines: Sequence[Line]) -> Suspect:
    """A node; its ranks where they are known."""
    return Suspect(score, why, ranks=places.ranks_of(host), host=host, node=True, lines=lines)
