"""Where the ranks of a run stand: from manifests, streams, and what launchers print at the start."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ranklog.answer.runs import StreamSum
from ranklog.client.manifests import load_manifests
from ranklog.client.search import Search, scan_lines
from ranklog.model import query as q
from ranklog.plan.tree import all_of, any_of
from ranklog.spmd.start_lines import LITERALS, groups_of_lines
from ranklog.spmd.topology import Topology, make_topology

_START_LINES_MAX = 200


def topology_of(
    run: Search,
    sums: Sequence[StreamSum],
    ranks: Iterable[int],
    *,
    whole: bool,
    hosts: Mapping[int, str] | None = None,
) -> Topology:
    """Of one launch. `ranks`: those whose lines are known; `whole`: those that only streams or
    manifests name count, too. `hosts`: where nobody else says it. A manifest's groups go before what
    launchers print."""
    known = set(ranks)
    named: dict[int, str | None] = {}
    local: dict[int, int | None] = {}
    for item in sums:
        rank = item.stream.rank
        if rank is None:
            continue
        if whole:
            known.add(rank)
        named[rank] = named.get(rank) or item.stream.host
        local[rank] = item.stream.local_rank if local.get(rank) is None else local[rank]
    groups: dict[int, Mapping[str, int]] = {}
    launches = [(item.run, item.launch) for item in run.scope.launches or ()]
    told = load_manifests(run.reader.store, run.reader.tenant, launches, whole=True)
    for said in told.told.values():
        for name, facts in said.manifest.get("ranks", {}).items():
            rank = int(name)
            if facts.get("groups"):
                groups[rank] = {key: int(place[0]) for key, place in facts["groups"].items()}
            named[rank] = facts.get("host") or named.get(rank)
            if whole:
                known.add(rank)
    for rank, host in (hosts or {}).items():
        named[rank] = named.get(rank) or host
    if not groups:
        groups.update(groups_of_lines(_start_lines(run), sorted(known)))
    return make_topology(known, hosts=named, local_ranks=local, groups=groups)


def _start_lines(run: Search) -> list[str]:
    term = any_of([q.Contains(literal) for literal in LITERALS])
    expr = all_of([*run.scope.restriction(), term])
    lines = scan_lines(run, expr, limit=_START_LINES_MAX, newest=False).lines()
    return [line.text for line in lines]
