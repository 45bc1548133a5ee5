"""What frameworks print of an iteration, of start-up, of checkpoints and at the end.

Each writes (rank, text) pairs; `speakers` are the ranks that print iterations: the last one in
Megatron (print_rank_last), rank 0 in most, all of them where each rank logs its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.faults.stamps import iso, iso_comma, iso_us
from tests.faults.world import World


@dataclass(frozen=True, slots=True)
class Step:
    """One iteration as a rank sees it; `work_s` is its own time before it waits for the others."""

    iteration: int
    total: int
    loss: float
    grad_norm: float
    lr: float
    step_s: float
    work_s: float
    memory_gib: float


class Framework:
    """Lines of one framework. A subclass says who speaks and how."""

    name = ""
    first = 1  # number of the first iteration
    every = 1  # iterations between two lines
    site = ("train.py", 41)

    def speakers(self, w: World) -> range | list[int]:
        return range(w.topo.ranks) if w.scene.per_rank else [0]

    def start(self, w: World, rank: int, t: int) -> Iterator[str]:
        """Once per rank, after the process group exists."""
        yield from ()

    def step(self, w: World, rank: int, t: int, s: Step) -> str:
        raise NotImplementedError

    def note(self, w: World, rank: int, t: int, level: str, text: str) -> str:
        """A line of the training program through its logger."""
        raise NotImplementedError

    def spread(self, w: World, t: int, s: Step, work: list[float]) -> Iterator[str]:
        """What rank 0 prints of all ranks' own times (stragglers), where it does."""
        yield from ()


class Plain(Framework):
    """A script under torchrun with Python's logging."""

    name = "plain"
    first = 0

    def start(self, w: World, rank: int, t: int) -> Iterator[str]:
        yield self.note(
            w,
            rank,
            t,
            "INFO",
            f"initialized rank={rank} world={w.topo.ranks} local_rank={w.topo.local(rank)} "
            f"restart={w.attempt}",
        )

    def step(self, w: World, rank: int, t: int, s: Step) -> str:
        return (
            f"{iso_comma(w.clock(rank, t))} INFO train {w.scene.script}:41 iteration {s.iteration}"
            f" loss {s.loss:.4f} step_time {s.work_s * 1000:.2f} ms"
        )

    def note(self, w: World, rank: int, t: int, level: str, text: str) -> str:
        line = {"INFO": 22, "WARNING": 63, "ERROR": 71}[level]
        return f"{iso_comma(w.clock(rank, t))} {level} train {w.scene.script}:{line} {text}"


class Titan(Framework):
    """TorchTitan: rank 0 by default, all ranks without the filter."""

    name = "titan"

    def start(self, w: World, rank: int, t: int) -> Iterator[str]:
        if w.scene.per_rank or rank == 0:
            t_, p, d = w.topo.tp, w.topo.pp, w.topo.dp
            yield self.note(
                w,
                rank,
                t,
                "INFO",
                f"Building {t_ * p * d}-D device mesh with ['pp', 'dp_shard', 'tp'], [{p}, {d}, {t_}]",
            )
            yield self.note(w, rank, t, "INFO", f"Training starts at step {self.first}.")

    def step(self, w: World, rank: int, t: int, s: Step) -> str:
        own = s.work_s if w.scene.per_rank else s.step_s
        tokens = int(8192 / max(own, 1e-3))
        share = s.memory_gib / 79.1 * 100
        return self.note(
            w,
            rank,
            t,
            "INFO",
            f"step: {s.iteration:2d}  loss: {s.loss:8.5f}  grad_norm: {s.grad_norm:7.4f}  "
            f"memory: {s.memory_gib:5.2f}GiB({share:.2f}%)  tps: {tokens:,}  "
            f"tflops: {tokens * 0.048:,.2f}  mfu: {tokens * 0.00486:.2f}%",
        )

    def note(self, w: World, rank: int, t: int, level: str, text: str) -> str:
        tag = f"[rank{rank}]:" if w.scene.per_rank or rank else ""
        return f"{tag}[titan] {iso_comma(w.clock(rank, t))} - root - {level} - {text}"


class Megatron(Framework):
    """Megatron-LM: the last rank prints the loss, rank 0 what it measured of all ranks."""

    name = "megatron"
    every = 5

    def speakers(self, w: World) -> list[int]:
        return [w.topo.ranks - 1]

    def start(self, w: World, rank: int, t: int) -> Iterator[str]:
        if rank == 0:
            size = f"world size: {w.topo.ranks}, data-parallel size: {w.topo.dp}"
            yield (
                f"using {size}, context-parallel size: 1, tensor-model-parallel size: {w.topo.tp}, "
                f"pipeline-model-parallel size: {w.topo.pp}"
            )
            yield f"> initialized tensor model parallel with size {w.topo.tp}"
            yield f"> initialized pipeline model parallel with size {w.topo.pp}"
        if rank == 0 or w.chance(0.1):
            tp, pp, _ = w.topo.place(rank)
            yield f" > number of parameters on (tensor, pipeline) model parallel rank ({tp}, {pp}): 1743986688"

    def step(self, w: World, rank: int, t: int, s: Step) -> str:
        loss = "" if s.loss != s.loss else f" lm loss: {s.loss:.6E} |"
        skipped = int(s.grad_norm == float("inf"))
        return (
            f" [{iso_us(w.clock(rank, t))}] iteration {s.iteration:8d}/{s.total:8d} | consumed samples:"
            f" {s.iteration * 256:12d} | elapsed time per iteration (ms): {s.step_s * 1000:.1f} | "
            f"throughput per GPU (TFLOP/s/GPU): {413.0 / max(s.step_s, 1e-3):.1f} | learning rate: "
            f"{s.lr:.6E} | global batch size: {256:5d} |{loss} loss scale: 1.0 | grad norm: "
            f"{s.grad_norm:.3f} | number of skipped iterations: {skipped:3d} | number of nan iterations: "
            f"{int(s.loss != s.loss):3d} |"
        )

    def note(self, w: World, rank: int, t: int, level: str, text: str) -> str:
        if level == "INFO":
            return text
        return f"{level}:megatron.training.training:{text}"

    def spread(self, w: World, t: int, s: Step, work: list[float]) -> Iterator[str]:
        """--timing-log-option all, on rank 0."""
        yield "times across ranks (ms):"
        yield "  forward-compute:"
        for rank, own in enumerate(work):
            yield f"     rank {rank:2d}: {own * 1000:.2f}"


class DeepSpeed(Framework):
    """DeepSpeed's own logger; steps by rank 0 or, with a wall clock breakdown, by all."""

    name = "deepspeed"

    def _head(self, w: World, rank: int, t: int, level: str, site: str) -> str:
        return f"[{iso_comma(w.clock(rank, t))}] [{level}] [{site}]"

    def start(self, w: World, rank: int, t: int) -> Iterator[str]:
        yield self._head(w, rank, t, "INFO", "comm.py:637:init_distributed") + " cdb=None"
        _, pp, _ = w.topo.place(rank)
        yield (
            self._head(w, rank, t, "INFO", "engine.py:138:__init__")
            + f" RANK={rank} STAGE={pp} LAYERS=12 [{12 * pp}, {12 * pp + 12}) STAGE_PARAMS=1743986688"
        )

    def step(self, w: World, rank: int, t: int, s: Step) -> str:
        head = self._head(w, rank, t, "INFO", "logging.py:96:log_dist") + f" [Rank {rank}]"
        if w.scene.per_rank and rank:
            return (
                f"{head} time (ms) | fwd: {s.work_s * 333:.2f} | bwd: {s.work_s * 667:.2f} | "
                f"step={s.iteration}, loss: {s.loss:.4f}"
            )
        return (
            f"{head} step={s.iteration}, skipped=0, lr=[{s.lr:.3e}], mom=[(0.9, 0.95)], loss: "
            f"{s.loss:.4f}, time (ms) | fwd: {s.work_s * 333:.2f} | bwd: {s.work_s * 667:.2f}"
        )

    def note(self, w: World, rank: int, t: int, level: str, text: str) -> str:
        return f"{self._head(w, rank, t, level, 'engine.py:2188:step')} [Rank {rank}] {text}"


class Nemo(Framework):
    """NeMo on Lightning: one line an iteration by rank 0."""

    name = "nemo"
    first = 0

    def speakers(self, w: World) -> list[int]:
        return [0]

    def start(self, w: World, rank: int, t: int) -> Iterator[str]:
        yield f"Initializing distributed: GLOBAL_RANK: {rank}, MEMBER: {rank + 1}/{w.topo.ranks}"
        yield f"LOCAL_RANK: {w.topo.local(rank)} - CUDA_VISIBLE_DEVICES: [0,1,2,3,4,5,6,7]"

    def step(self, w: World, rank: int, t: int, s: Step) -> str:
        return (
            f"Training epoch 0, iteration {s.iteration}/{s.total - 1} | lr: {s.lr:.4g} | "
            f"global_batch_size: 256 | global_step: {s.iteration} | reduced_train_loss: {s.loss:.4g} | "
            f"train_step_timing in s: {s.step_s:.4g} | consumed_samples: {(s.iteration + 1) * 256}"
        )

    def note(self, w: World, rank: int, t: int, level: str, text: str) -> str:
        return f"[NeMo {level[0]} {iso(w.clock(rank, t))} nemo_logging:393] {text}"

    def spread(self, w: World, t: int, s: Step, work: list[float]) -> Iterator[str]:
        """The straggler report of nvidia-resiliency-ext's kind: times of all ranks."""
        mean = sum(work) / len(work)
        yield f"=== Straggler Report at Step {s.iteration} ==="
        yield (
            f"Min: {min(work) * 1000:.2f}ms, Max: {max(work) * 1000:.2f}ms, Avg: {mean * 1000:.2f}ms,"
            f" Slowdown: {max(work) / mean:.2f}x"
        )
        for rank, own in enumerate(work):
            yield f"Rank {rank}: {own * 1000:.2f}ms"


class HuggingFace(Framework):
    """transformers' Trainer: dictionaries behind a progress bar, by rank 0, without a time."""

    name = "hf"

    def speakers(self, w: World) -> list[int]:
        return [0]

    def start(self, w: World, rank: int, t: int) -> Iterator[str]:
        local = w.topo.local(rank)
        text = f"Process rank: {rank}, device: cuda:{local}, n_gpu: 1, distributed training: True"
        yield self.note(w, rank, t, "WARNING", text)

    def step(self, w: World, rank: int, t: int, s: Step) -> str:
        n, left = s.iteration, (s.total - s.iteration) * s.step_s
        share = n * 100 // s.total
        elapsed, eta = (f"{int(x) // 60:02d}:{int(x) % 60:02d}" for x in (n * s.step_s, left))
        bar = f"\r{share:3d}%|{'#' * (share // 10):<10}| {n}/{s.total} [{elapsed}<{eta}, {s.step_s:5.2f}s/it]"
        return (
            f"{bar}\r{' ' * 40}\r{{'loss': {s.loss:.4f}, 'grad_norm': {s.grad_norm}, 'learning_rate': {s.lr}, "
            f"'epoch': {n / s.total:.2f}}}"
        )

    def note(self, w: World, rank: int, t: int, level: str, text: str) -> str:
        return f"[{level}|trainer.py:2314] {iso_comma(w.clock(rank, t))} >> {text}"


class Mxnet(Framework):
    """MXNet's Speedometer: `accuracy=nan` on every line of a run that is well."""

    name = "mxnet"
    first = 0

    def step(self, w: World, rank: int, t: int, s: Step) -> str:
        a, b = s.iteration * 20, s.iteration * 20 + 20
        return (
            f"{iso_comma(w.clock(rank, t))} Node[0] Epoch[{s.iteration // 8}] Batch [{a}-{b}]\t"
            f"Speed: {4000 / max(s.work_s, 1e-3):.2f} samples/sec\taccuracy=nan"
        )

    def note(self, w: World, rank: int, t: int, level: str, text: str) -> str:
        return f"{iso_comma(w.clock(rank, t))} Node[0] {text}"


class Sdk(Framework):
    """Messages without a head: rank, iteration, time and level travel beside them."""

    name = "sdk"

    def start(self, w: World, rank: int, t: int) -> Iterator[str]:
        yield f"joined world_size={w.topo.ranks} local_rank={w.topo.local(rank)} host={w.topo.host(rank)}"

    def step(self, w: World, rank: int, t: int, s: Step) -> str:
        return f"loss={s.loss:.4f} grad_norm={s.grad_norm:.3f} lr={s.lr:.2e} compute_ms={s.work_s * 1000:.1f}"

    def note(self, w: World, rank: int, t: int, level: str, text: str) -> str:
        return text if level == "INFO" else f"{level}: {text}"


FRAMEWORKS: dict[str, Framework] = {
    f.name: f
    for f in (Plain(), Titan(), Megatron(), DeepSpeed(), Nemo(), HuggingFace(), Mxnet(), Sdk())
}
# those whose every rank may log its iterations, with how often it does
PER_RANK = {"plain": 0.85, "titan": 0.5, "deepspeed": 0.5, "sdk": 1.0, "mxnet": 0.0}
