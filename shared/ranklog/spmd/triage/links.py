"""Whose link went: the kernel that says so, else the address that neighbours name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from ranklog.spmd.triage.places import Places
from ranklog.spmd.triage.read import Sign


@dataclass(frozen=True, slots=True)
class Links:
    """`host` None: nobody can tell."""

    host: str | None
    why: str
    signs: Sequence[Sign]


def judge_links(down: Sequence[Sign], errors: Sequence[Sign], places: Places) -> Links | None:
    """A peer address inside an InfiniBand error names the peer, not the reporter."""
    hosts = list(dict.fromkeys(sign.host for sign in down if sign.host))
    if len(hosts) == 1 and errors:
        return Links(hosts[0], "its link went down", [*down, *errors])
    named: dict[str, set[str]] = defaultdict(set)  # peer: hosts that name it
    names: dict[str, set[str]] = defaultdict(set)  # host: peers that it names
    for sign in errors:
        peer = sign.data.get("peer")
        reporter = _reporter(sign, places)
        if peer is not None and reporter is not None:
            named[peer].add(reporter)
            names[reporter].add(peer)
    if not errors:
        # a kernel and a process that say so of the same minute
        said = down if any(sign.ranks for sign in down) and len(down) > 1 else []
        host = hosts[0] if len(hosts) == 1 else None
        return Links(host, "a link went down", said) if said else None
    if not named:
        return Links(None, "errors of the network that name nobody", errors)
    most = max(len(hosts) for hosts in named.values())
    top = [peer for peer, reporters in named.items() if len(reporters) == most]
    if len(top) == 1 and most > 1:
        host = places.addresses.get(top[0], top[0])
        if not places.ranks_of(host):
            # nobody says whose address it is: a host that names others and not itself
            left = [h for h in names if top[0] not in names[h]]
            left = left or [h for h in places.names if h not in names]
            host = left[0] if len(left) == 1 else host
        return Links(host, f"{most} hosts name it in errors of the network", errors)
    several = [host for host, peers in names.items() if len(peers) > 1]
    if len(several) == 1:
        return Links(several[0], "it names several peers in errors of the network", errors)
    return Links(None, "hosts name each other in errors of the network", errors)


def _reporter(sign: Sign, places: Places) -> str | None:
    host = places.host_of(sign.ranks) if sign.ranks else None
    return host or sign.host
