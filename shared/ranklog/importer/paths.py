"""What a file's path says: rank, local rank, attempt, host, channel. A local rank is not a rank.

<host>/<rdzv id>_<random>/attempt_<a>/<local rank>/{stdout,stderr}.log    torchrun --log-dir
workerlog.<local rank>                                                    Paddle's launcher
rank-7/…  rank_7.log  rank7.out                                           a global rank
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ranklog.errors import BadInput

_TREE = re.compile(
    r"(?:^|.*/)(?P<tree>[^/]+_[^/_]*[^/]*)/attempt_(?P<attempt>\d+)/(?P<local>\d+)/"
    r"(?P<channel>stdout|stderr)\.log(?:\.(?:gz|zst))?$"
)
_WORKER = re.compile(r"(?:^|/)workerlog\.(?P<local>\d+)(?:\.\w+)?$")
_LOCAL = re.compile(r"(?:^|[/_.\-])local[-_]?rank[-_.=]?(?P<local>\d+)(?=$|[/_.\-])", re.I)
_RANK = re.compile(
    r"(?:^|(?:(?P<of>[A-Za-z]+)[-_])|[/_.\-])(?:global[-_]?)?rank[-_.=]?(?P<rank>\d+)(?=$|[/_.\-])",
    re.I,
)
# Ranks within a node or a group of ranks; `tp_rank_1`, torchelastic's GROUP_RANK.
_OF_GROUP = frozenset(
    """
    local node group role pg tp pp dp cp ep mp sp vp etp edp hsdp fsdp tensor pipeline data expert
    context model sequence parallel stage shard
    """.split()
)
_HOST = re.compile(
    r"(?:^|/)(?P<host>(?:node|host|worker|pod|compute|dgx|hgx|nid|ip-)[-_]?[\w-]*?\d+"
    r"|\d{1,3}(?:\.\d{1,3}){3})(?=/)",
    re.I,
)


@dataclass(frozen=True, slots=True)
class PathFacts:
    """`tree` names the launcher's folder: files of one tree and attempt are ranks of one node."""

    channel: str
    rank: int | None = None
    local_rank: int | None = None
    attempt: int = 0
    host: str | None = None
    tree: str | None = None


def read_path(relative: str, whole: str) -> PathFacts:
    """Facts of a path; `relative` to the folder that is imported, `whole` as far as it is known."""
    tree = _TREE.match(whole)
    if tree:
        # The host's folder may be the one that was named.
        outside = whole[: tree.start("tree")].split("/")[-2:-1]
        return PathFacts(
            tree["channel"],
            local_rank=int(tree["local"]),
            attempt=int(tree["attempt"]),
            host=_host(relative) or _host("/".join([*outside, ""])),
            tree=f"{whole[: tree.end('tree')]}#{tree['attempt']}",
        )
    name = _host(relative)
    worker = _WORKER.search(relative) or _LOCAL.search(relative)
    if worker:
        folder = whole.rpartition("/")[0]
        return PathFacts(relative, local_rank=int(worker["local"]), host=name, tree=folder)
    ranks = [
        int(found["rank"])
        for found in _RANK.finditer(relative)
        if (found["of"] or "").lower() not in _OF_GROUP
    ]
    return PathFacts(relative, rank=ranks[-1] if ranks else None, host=name)


def _host(path: str) -> str | None:
    found = _HOST.search(path)
    return found["host"] if found else None


def rank_by_pattern(pattern: str) -> re.Pattern[str]:
    """The expression of --rank-from: its group `rank`, else its first group, is the rank."""
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise BadInput(f"--rank-from {pattern!r}: {error}") from error
    if not compiled.groups:
        raise BadInput(
            f"--rank-from {pattern!r} has no group", hint=r"write the rank as a group: 'node-(\d+)'"
        )
    return compiled


def match_rank(pattern: re.Pattern[str], path: str) -> int | None:
    """The rank that the expression finds in a path, None where it does not match."""
    found = pattern.search(path)
    if found is None:
        return None
    value = found["rank"] if "rank" in pattern.groupindex else found[1]
    if value is None or not value.isdecimal():
        raise BadInput(f"--rank-from finds {value!r} in {path}, no number")
    return int(value)
