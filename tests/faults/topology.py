"""Where a job's ranks are: hosts, local ranks, processes, tensor, pipeline and data parallel groups.

Ranks of one tensor group are adjacent, then data, then pipeline (Megatron's order):
rank = (pp * dp_size + dp) * tp_size + tp.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_HOST_NAMES = ("gpu{:03d}", "node-{:04d}", "dgx-{:03d}", "compute-hpc-node-{}", "nid{:06d}")


@dataclass(frozen=True, slots=True)
class Topology:
    """`hosts[n]` is node n's name, `pids[r]` rank r's process, `agents[n]` node n's launcher."""

    ranks: int
    per_node: int
    tp: int
    pp: int
    dp: int
    hosts: tuple[str, ...]
    addresses: tuple[str, ...]
    pids: tuple[int, ...]
    agents: tuple[int, ...]

    @property
    def nodes(self) -> int:
        return len(self.hosts)

    def node(self, rank: int) -> int:
        return rank // self.per_node

    def local(self, rank: int) -> int:
        return rank % self.per_node

    def host(self, rank: int) -> str:
        return self.hosts[rank // self.per_node]

    def on_node(self, node: int) -> range:
        """Ranks of a node."""
        first = node * self.per_node
        return range(first, min(first + self.per_node, self.ranks))

    def place(self, rank: int) -> tuple[int, int, int]:
        """(tp, pp, dp) of a rank."""
        return rank % self.tp, rank // (self.tp * self.dp), rank // self.tp % self.dp

    def dp_group(self, rank: int) -> tuple[int, ...]:
        """Ranks that hold the same shard of the model."""
        tp, pp, _ = self.place(rank)
        return tuple((pp * self.dp + dp) * self.tp + tp for dp in range(self.dp))

    def replica(self, rank: int) -> tuple[int, ...]:
        """Ranks that hold one copy of the model, and so see the same data."""
        _, _, dp = self.place(rank)
        return tuple(
            (pp * self.dp + dp) * self.tp + tp for pp in range(self.pp) for tp in range(self.tp)
        )

    def bus(self, rank: int) -> str:
        """PCI address of a rank's GPU, as kernel messages write it."""
        return (
            f"0000:{(0x1B, 0x43, 0x52, 0x61, 0x9D, 0xC3, 0xD1, 0xDF)[self.local(rank) % 8]:02x}:00"
        )


def make_topology(rng: np.random.Generator, ranks: int, nodes_min: int = 1) -> Topology:
    """Some topology of as many ranks; 8 (or 4) ranks a node, fewer where more nodes are needed."""
    per_node = 8 if ranks % 8 == 0 else 4 if ranks % 4 == 0 else ranks
    if ranks <= 16 and ranks % 4 == 0 and rng.random() < 0.25:
        per_node = 4
    while -(-ranks // per_node) < nodes_min and per_node > 1:
        per_node //= 2
    nodes = -(-ranks // per_node)
    tp = int(rng.choice([size for size in (1, 1, 2, 4, 8) if per_node % size == 0]))
    pp = int(rng.choice([size for size in (1, 1, 2, 4) if nodes % size == 0]))
    pattern = str(rng.choice(_HOST_NAMES))
    numbers = np.sort(rng.choice(np.arange(1, 9 * nodes + 40), nodes, replace=False))
    if pattern.startswith("gpu") and nodes > 1 and rng.random() < 0.2:
        rng.shuffle(numbers)  # a scheduler's node list need not be sorted
    subnet = int(rng.integers(0, 200))
    return Topology(
        ranks=ranks,
        per_node=per_node,
        tp=tp,
        pp=pp,
        dp=ranks // (tp * pp),
        hosts=tuple(pattern.format(int(n)) for n in numbers),
        addresses=tuple(f"10.{subnet}.{int(n) // 250}.{int(n) % 250 + 2}" for n in numbers),
        pids=tuple(_pids(rng, nodes, per_node)[:ranks]),
        agents=tuple(int(n) for n in rng.integers(9_000, 90_000, nodes)),
    )


def _pids(rng: np.random.Generator, nodes: int, per_node: int) -> list[int]:
    """Processes of a node are started one after the other."""
    first = rng.integers(100_000, 900_000, nodes)
    gaps = rng.integers(1, 14, (nodes, per_node)).cumsum(axis=1)
    return [int(pid) for pid in (first[:, None] + gaps).ravel()]
