"""Places of ranks in parallel groups, as launchers and frameworks print them at the start.

Sizes need an order to become places. Megatron-LM's, outermost first: pp, dp, cp, tp
(megatron/core/parallel_state.py, order "tp-cp-ep-dp-pp" from the innermost); a device mesh is said
outermost first, too.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import prod

LITERALS = (
    "tensor-model-parallel",
    "ProcessCoord(",
    "parallel group ranks",
    "device mesh with",
)

_MEGATRON = re.compile(
    r"data-parallel(?:-| )size: (?P<dp>\d+),?(?:.*?[ ,]context-parallel(?:-| )size: (?P<cp>\d+))?"
    r".*?tensor-model-parallel(?:-| )size: (?P<tp>\d+),?"
    r".*?pipeline-model-parallel(?:-| )size: (?P<pp>\d+)"
)
_DEEPSPEED = re.compile(r"ProcessCoord\(([^)]*)\): (\d+)")
_DEEPSPEED_NAMES = {"pipe": "pp", "data": "dp", "model": "tp"}
_NEMO = re.compile(
    r"All (?P<name>tensor model|pipeline model|data|context) parallel group ranks(?P<combined> with "
    r"context parallel combined)?: (?P<groups>\[\[[\d,\s\[\]]*\]\])"
)
_NEMO_NAMES = {"tensor model": "tp", "pipeline model": "pp", "data": "dp", "context": "cp"}
_MESH = re.compile(r"device mesh with \[(?P<names>[^\]]*)\], \[(?P<sizes>[\d, ]+)\]")

Places = dict[int, dict[str, int]]


def groups_of_lines(texts: Iterable[str], ranks: Sequence[int]) -> Places:
    """Places that start lines of Megatron-LM, DeepSpeed, NeMo and TorchTitan tell; nothing where they
    tell none, or not of as many ranks as there are. What names ranks goes before sizes."""
    texts = list(texts)
    named = _deepspeed(texts) or _nemo(texts)
    if named:
        return named
    world = max(ranks, default=-1) + 1
    for text in texts:
        for sizes in (_megatron_sizes(text), _mesh_sizes(text)):
            if sizes and prod(sizes.values()) == world > 1:
                return _row_major(sizes, ranks)
    return {}


def _deepspeed(texts: Iterable[str]) -> Places:
    found: Places = defaultdict(dict)
    for text in texts:
        for said, rank in _DEEPSPEED.findall(text):
            for part in said.split(", "):
                name, _, place = part.partition("=")
                if place.isdecimal():
                    found[int(rank)][_DEEPSPEED_NAMES.get(name, name)] = int(place)
    return dict(found)


def _nemo(texts: Iterable[str]) -> Places:
    """Lists of all groups: a rank's place is where it stands in its own."""
    found: Places = defaultdict(dict)
    for text in texts:
        said = _NEMO.search(text)
        if said is None:
            continue
        name = _NEMO_NAMES[said["name"]]
        for group in json.loads(said["groups"]):
            for place, rank in enumerate(group):
                # data parallel groups are said with and without the context's part
                if not said["combined"] or name not in found[rank]:
                    found[rank][name] = place
    return dict(found)


def _megatron_sizes(text: str) -> Mapping[str, int]:
    sizes = _MEGATRON.search(text)
    if sizes is None:
        return {}
    return {name: int(sizes[name] or 1) for name in ("pp", "dp", "cp", "tp")}


def _mesh_sizes(text: str) -> Mapping[str, int]:
    mesh = _MESH.search(text)
    if mesh is None:
        return {}
    names = re.findall(r"[\w-]+", mesh["names"])
    return dict(zip(names, map(int, re.findall(r"\d+", mesh["sizes"])), strict=False))


def _row_major(sizes: Mapping[str, int], ranks: Iterable[int]) -> Places:
    """Sizes outermost first; dimensions of one place are left out."""
    found: Places = {}
    for rank in ranks:
        rest, places = rank, {}
        for name, size in reversed(list(sizes.items())):
            rest, place = divmod(rest, size)
            if size > 1 or name in ("tp", "pp", "dp"):
                places[name] = place
        found[rank] = dict(reversed(list(places.items())))
    return found
