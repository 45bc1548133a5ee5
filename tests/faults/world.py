"""The job while it is being written: who says what, when, by which clock.

Times are true nanoseconds; what a line says of its time is its host's clock, `World.clock`. A line
is (true time, text, iteration or None, channel); lines of a process may be said in any order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from tests.faults.stamps import SECOND
from tests.faults.topology import Topology

Line = tuple[int, str, int | None, str]
START_NS = 1_740_000_000 * SECOND  # 2025-02-19; jobs start up to 300 days later
_DAYS = 300


@dataclass(slots=True)
class Scene:
    """What was drawn for a job before anything is written. `per_rank`: each rank logs iterations.

    `torch` is a version, whose texts differ; compared as text.
    """

    fault: str
    framework: str
    layout: str
    per_rank: bool
    torchrun: bool
    gloo: bool
    flight_recorder: bool
    kernel_logs: bool
    timeout_s: int
    nccl_info: bool
    torch: str
    script: str
    python: str


@dataclass
class World:
    """`end_ns` is when the job's last process was gone."""

    rng: np.random.Generator
    topo: Topology
    scene: Scene
    start_ns: int = 0
    attempt: int = 0
    processes: dict[tuple[int, int], list[Line]] = field(default_factory=lambda: defaultdict(list))
    agents: dict[int, list[Line]] = field(default_factory=lambda: defaultdict(list))
    launcher: list[Line] = field(default_factory=list)
    kernel: dict[int, list[Line]] = field(default_factory=lambda: defaultdict(list))
    extra: dict[str, list[Line]] = field(default_factory=lambda: defaultdict(list))
    skew_ns: tuple[int, ...] = ()
    job_id: int = 0
    run_id: str = "none"

    def __post_init__(self) -> None:
        rng = self.rng
        self.start_ns = START_NS + int(rng.integers(0, _DAYS * 86400)) * SECOND
        skew = rng.normal(0, 0.02, self.topo.nodes)
        if rng.random() < 0.25 and self.topo.nodes > 1:  # a host whose clock nobody sets
            skew[int(rng.integers(self.topo.nodes))] += rng.normal(0, 4.0)
        self.skew_ns = tuple(int(s * SECOND) for s in skew)
        self.job_id = int(rng.integers(10_000, 4_000_000))
        if rng.random() < 0.5:
            self.run_id = str(rng.choice(["llama", "gpt-moe", "pretrain-7b", "ablate"])) + (
                f"-{int(rng.integers(1, 400)):03d}"
            )

    # --- clocks ---------------------------------------------------------------------------------
    def clock(self, rank: int, t: int) -> int:
        """What a rank's host says the time is."""
        return t + self.skew_ns[rank // self.topo.per_node]

    def node_clock(self, node: int, t: int) -> int:
        return t + self.skew_ns[node]

    def after(self, t: int, low_s: float, high_s: float) -> int:
        """Some time between so many seconds after t."""
        return t + int(self.rng.uniform(low_s, high_s) * SECOND)

    # --- who speaks -----------------------------------------------------------------------------
    def say(
        self, rank: int, t: int, text: str, it: int | None = None, channel: str | None = None
    ) -> None:
        """One line of a rank, through its logger (stderr, or the SDK) unless said otherwise."""
        channel = channel or ("stdout" if self.scene.framework == "sdk" else "stderr")
        self.processes[self.attempt, rank].append((t, text, it, channel))

    def say_all(
        self, rank: int, t: int, lines: Iterable[str], it: int | None = None, step_ns: int = 20_000
    ) -> int:
        """Lines of one record, in a row. Returns when the last was written."""
        out = self.processes[self.attempt, rank]
        for text in lines:
            out.append((t, text, it, "stderr"))
            t += step_ns
        return t

    def say_agent(self, node: int, t: int, lines: Iterable[str]) -> int:
        """torchrun's agent of a node."""
        for text in lines:
            self.agents[node].append((t, text, None, "stderr"))
            t += 1000
        return t

    def say_launcher(self, t: int, *lines: str) -> None:
        """The shell, srun and slurmstepd."""
        for text in lines:
            self.launcher.append((t, text, None, "stderr"))
            t += 1000

    def say_kernel(self, node: int, t: int, *lines: str) -> None:
        """A host's kernel."""
        for text in lines:
            self.kernel[node].append((t, text, None, "kernel"))

    def silence(self, ranks: Iterable[int], t: int) -> None:
        """Processes that are gone or stuck at t: what they would have said later is not said."""
        for rank in ranks:
            key = (self.attempt, rank)
            self.processes[key] = [line for line in self.processes[key] if line[0] <= t]

    # --- choices --------------------------------------------------------------------------------
    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def pick(self, *options: str) -> str:
        return options[int(self.rng.integers(len(options)))]

    def any_rank(self) -> int:
        return int(self.rng.integers(self.topo.ranks))

    def any_node(self) -> int:
        return int(self.rng.integers(self.topo.nodes))

    def some(self, ranks: Iterable[int], share: float) -> list[int]:
        """A random part of some ranks, each with this chance."""
        every = list(ranks)
        return [r for r, u in zip(every, self.rng.random(len(every)), strict=True) if u < share]

    def shuffled(self, ranks: Iterable[int]) -> list[int]:
        every = list(ranks)
        return [every[i] for i in self.rng.permutation(len(every))]
