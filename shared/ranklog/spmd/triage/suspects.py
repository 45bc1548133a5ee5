"""Who is suspected: a rank, some ranks, a host, or all of them alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ranklog.model.answer import Line
from ranklog.spmd.triage.places import Places

if TYPE_CHECKING:
    from ranklog.spmd.topology import Group, Topology


@dataclass(slots=True)
class Suspect:
    """`rank` for one; else `ranks`, "all" or several. `host` where it is a node's fault, or where the
    ranks sit. `node`: the host as a whole. `group`: what several ranks have in common. `score` in
    0..1."""

    score: float
    why: str
    rank: int | None = None
    ranks: frozenset[int] | str | None = None
    host: str | None = None
    node: bool = False
    lines: Sequence[Line] = field(default_factory=list)
    group: Group | None = None

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
        numbers = "ranks " + _spans(sorted(self.ranks))
        return numbers if self.group is None else f"{_group_name(self.group)}: {numbers}"


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


def name_group(suspect: Suspect, topology: Topology) -> None:
    """Say what several ranks have in common: a stage, a replica, a communicator, most of a node."""
    if not suspect.node and isinstance(suspect.ranks, frozenset):
        group = topology.explain(suspect.ranks)
        suspect.group = None if group is None or group.name == "all" else group


def _group_name(group: Group) -> str:
    """`all of pp=1 but rank 9`, in the words of the outliers."""
    text = group.name
    if group.exceptions:
        text += f" but rank {_spans(group.exceptions)}"
    if group.others:
        text += f", and rank {_spans(group.others)}"
    return text


def _spans(ranks: Sequence[int]) -> str:
    """`0-3,7` of ascending numbers."""
    spans: list[list[int]] = []
    for rank in ranks:
        if spans and rank == spans[-1][1] + 1:
            spans[-1][1] = rank
        else:
            spans.append([rank, rank])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)
