"""Which ranks sit on which host, and what to call a set of ranks."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

from ranklog.model.answer import Line
from ranklog.spmd.triage.case import RankState
from ranklog.spmd.triage.exits import Exit
from ranklog.spmd.triage.read import Sign, body_of

_NCCL = re.compile(r"^([\w.-]+):\d+:\d+ \[\d+\] ")


class Places:
    """Hosts of ranks, as far as streams, failure tables and NCCL's lines tell; short names equal long
    ones."""

    def __init__(
        self,
        ranks: Mapping[int, RankState],
        exits: Iterable[Exit],
        lines: Iterable[Line],
        signs: Iterable[Sign],
    ) -> None:
        self.hosts: dict[int, str] = {}
        for line in lines:
            if line.rank is not None and line.rank not in self.hosts:
                named = _NCCL.match(body_of(line))
                if named is not None:
                    self.hosts[line.rank] = named[1]
        for item in exits:
            if item.host is not None and (not item.task or item.rank in ranks):
                self.hosts.setdefault(item.rank, item.host)
        for rank, state in ranks.items():
            if state.host is not None:
                self.hosts[rank] = state.host
        self.ranks = frozenset(ranks)
        self.addresses = {
            s.data["ip"]: s.data["host"] for s in signs if s.kind == "address" and "ip" in s.data
        }
        self._of_host: dict[str, set[int]] = defaultdict(set)
        for rank, host in self.hosts.items():
            self._of_host[_short(host)].add(rank)

    @property
    def nodes(self) -> int:
        """How many hosts are known."""
        return len(self._of_host)

    @property
    def names(self) -> list[str]:
        """Hosts that are known."""
        return list(dict.fromkeys(self.hosts.values()))

    def ranks_of(self, host: str) -> frozenset[int]:
        """Ranks on a host, by its name or its address."""
        name = self.addresses.get(host, host)
        return frozenset(self._of_host.get(_short(name), ()))

    def host_of(self, ranks: Iterable[int]) -> str | None:
        """The only host of these ranks; None for several, or where it is not known."""
        found = {_short(self.hosts.get(rank, "")) for rank in ranks}
        if len(found) != 1 or "" in found:
            return None
        name = found.pop()
        return next(host for host in self.hosts.values() if _short(host) == name)

    def whole_host(self, ranks: frozenset[int]) -> str | None:
        """The host whose ranks these are, all of them, where there are other hosts."""
        host = self.host_of(ranks)
        if host is None or self.nodes < 2 or len(ranks) < 2:
            return None
        return host if self.ranks_of(host) == ranks else None


def _short(host: str) -> str:
    return host if re.fullmatch(r"[\d.]+", host) else host.split(".", 1)[0]
