"""What a launch's processes said of it, folded into one manifest, and into facts to ask for. Pure.

A piece is what one process said at one time. The newest attempt's lowest rank leads, and what started
it: what they say of command, configuration and code is the run's; of hosts and places everybody speaks
for themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ranklog.layout.keys import ManifestName

Scalar = int | float | str
# What a host says of itself, under its name in `hosts`.
_OF_HOSTS = ("machine", "accelerators", "drivers", "networks", "container")
# What one process says of itself, under its rank in `ranks`.
_OF_RANKS = ("host", "local_rank", "groups", "pid", "started_ns")
_KEPT_APART = {*_OF_HOSTS, *_OF_RANKS, "rank", "version", "attachments"}
# A key of a flattened configuration is cut at so many levels.
_DEPTH_MAX = 32


@dataclass(frozen=True, slots=True)
class Piece:
    """One stored piece: who said it in which attempt, and what."""

    name: ManifestName
    said: Mapping[str, Any]


def leading(names: Iterable[ManifestName]) -> list[ManifestName]:
    """The pieces of the newest attempt's lowest rank, and of the first host's launcher."""
    known = list(names)
    newest = max((name.attempt for name in known), default=0)
    known = [name for name in known if name.attempt == newest]
    rank = min((name.rank for name in known if name.rank is not None), default=None)
    host = min((name.host for name in known if name.rank is None), default="")
    return [
        name for name in known if (name.host == host if name.rank is None else name.rank == rank)
    ]


def declared_ranks(names: Iterable[ManifestName]) -> dict[int, frozenset[int]]:
    """Ranks that said anything of themselves, by attempt."""
    ranks: dict[int, set[int]] = {}
    for name in names:
        if name.rank is not None:
            ranks.setdefault(name.attempt, set()).add(name.rank)
    return {attempt: frozenset(found) for attempt, found in ranks.items()}


def merge(pieces: Sequence[Piece]) -> dict[str, Any]:
    """One manifest: the leading rank's members, `hosts`, `ranks` and `attachments`."""
    lead = set(leading(piece.name for piece in pieces))
    has_ranks = any(name.rank is not None for name in lead)
    merged: dict[str, Any] = {}
    hosts: dict[str, dict[str, Any]] = {}
    ranks: dict[int, dict[str, Any]] = {}
    attachments: list[dict[str, Any]] = []
    for piece in sorted(pieces, key=_by_time):
        said = piece.said
        attachments += said.get("attachments", [])
        if piece.name in lead:
            merged |= _of_run(said, launcher=piece.name.rank is None and has_ranks)
        if piece.name.rank is not None:
            of_rank = {key: said[key] for key in _OF_RANKS if key in said}
            ranks.setdefault(piece.name.rank, {}).update(of_rank)
    for piece in sorted(pieces, key=_by_time):
        of_host = {key: piece.said[key] for key in _OF_HOSTS if key in piece.said}
        host = piece.said.get("host") or piece.name.host or _host_of(piece.name.rank, ranks)
        if of_host and host:
            hosts.setdefault(host, {}).update(of_host)
    merged["hosts"] = hosts
    merged["ranks"] = {str(rank): ranks[rank] for rank in sorted(ranks)}
    if attachments:
        merged["attachments"] = sorted(attachments, key=lambda item: item.get("time_ns", 0))
    return merged


def _of_run(said: Mapping[str, Any], *, launcher: bool) -> dict[str, Any]:
    """What a piece says of the whole run; a launcher's command is not the ranks'."""
    found = {key: value for key, value in said.items() if key not in _KEPT_APART}
    if launcher and "command" in found:
        found["launch_command"] = found.pop("command")
    return found


def _by_time(piece: Piece) -> tuple[int, bool, int, str]:
    """Launchers before ranks: what a rank says of the run stands."""
    name = piece.name
    return (
        name.attempt,
        name.rank is not None,
        int(piece.said.get("started_ns") or 0),
        name.digest,
    )


def _host_of(rank: int | None, ranks: Mapping[int, Mapping[str, Any]]) -> str:
    return "" if rank is None else str(ranks.get(rank, {}).get("host", ""))


def topology(manifest: Mapping[str, Any], hosts: Mapping[int, str | None]) -> dict[str, Any]:
    """Hosts, ranks on each, sizes of the declared groups. `hosts`: the host of each rank that logged."""
    places = dict(hosts)
    sizes: dict[str, int] = {}
    for rank, said in manifest.get("ranks", {}).items():
        places[int(rank)] = said.get("host")
        for name, (place, size) in said.get("groups", {}).items():
            sizes[name] = max(sizes.get(name, 0), size or 0, place + 1)
    counts: dict[str, int] = {}
    for host in places.values():
        if host:
            counts[host] = counts.get(host, 0) + 1
    shape: dict[str, Any] = {"hosts": len(counts), "groups": sizes}
    if counts:
        fewest, most = min(counts.values()), max(counts.values())
        shape["ranks_per_host"] = most if fewest == most else [fewest, most]
    gpus = [len(host.get("accelerators", ())) for host in manifest.get("hosts", {}).values()]
    if any(gpus):
        shape["accelerators"] = sum(gpus)
    return shape


def flatten(value: Any, prefix: str = "", depth: int = 0) -> dict[str, Scalar | None]:
    """Nested values under keys with dots, items of lists under their number: `optimizer.betas.0`."""
    if isinstance(value, Mapping) and depth < _DEPTH_MAX:
        pairs = [(str(key), item) for key, item in value.items()]
    elif isinstance(value, (list, tuple)) and depth < _DEPTH_MAX:
        pairs = [(str(at), item) for at, item in enumerate(value)]
    else:
        plain = value if value is None or isinstance(value, (int, float, str)) else str(value)
        return {prefix: plain}
    flat: dict[str, Scalar | None] = {}
    for key, item in pairs:
        flat |= flatten(item, f"{prefix}.{key}" if prefix else key, depth + 1)
    return flat
