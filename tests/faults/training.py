"""The iterations of an attempt: each rank works, all wait for the slowest, then lines are written.

Shapes: K iterations, R ranks. `work_s` is float[K, R], a rank's own time; `end_ns` int[K], when the
last rank arrived and the collective was over.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tests.faults.frameworks import FRAMEWORKS, Framework, Step
from tests.faults.stamps import MS, SECOND
from tests.faults.world import World

F64 = npt.NDArray[np.float64]
_STRAGGLER_REPORTS_RANKS_MAX = 512


@dataclass
class Training:
    """`first` is the number of iteration 0 of the arrays. `loss` float[K, R], mostly equal rows."""

    w: World
    first: int
    total: int
    work_s: F64
    loss: F64
    grad_norm: F64
    start_ns: int
    checkpoint_every: int
    end_ns: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    report_stragglers: bool = False
    noted: set[int] = field(default_factory=set)

    @property
    def framework(self) -> Framework:
        return FRAMEWORKS[self.w.scene.framework]

    @property
    def count(self) -> int:
        return len(self.work_s)

    def number(self, k: int) -> int:
        """The iteration's number as it is printed."""
        return self.first + k * self.framework.every

    def settle(self) -> None:
        """Compute when each iteration is over."""
        waits = self.w.rng.exponential(0.01, self.count) + 0.02 * self.work_s.mean(axis=1)
        steps = self.work_s.max(axis=1) + waits
        self.end_ns = self.start_ns + (steps.cumsum() * SECOND).astype(np.int64)

    def write(self, upto: int) -> None:
        """Lines of the iterations before `upto`, of checkpoints among them, and reports."""
        self._write(0, upto)

    def _write(self, since: int, upto: int) -> None:
        w, framework = self.w, self.framework
        speakers = framework.speakers(w)
        late = w.rng.exponential(2.0, (upto - since, len(speakers))) * MS
        begin = int(self.end_ns[since - 1]) if since else self.start_ns
        for k in range(since, upto):
            end, number = int(self.end_ns[k]), self.number(k)
            step_s, lr = (end - begin) / SECOND, 3e-4 * min(1.0, (number + 1) / 20)
            for place, rank in enumerate(speakers):
                t = end + int(late[k - since, place])
                s = Step(
                    number,
                    self.total,
                    float(self.loss[k, rank]),
                    float(self.grad_norm[k, rank]),
                    lr,
                    step_s,
                    float(self.work_s[k, rank]),
                    41.3 + (rank % 7) * 0.11,
                )
                w.say(rank, t, framework.step(w, rank, t, s), number, "stdout")
            if self.report_stragglers and k % 4 == 3:
                self._report(k, end, step_s)
            if number and number % self.checkpoint_every == 0:
                self.checkpoint(number, end)
            begin = end

    def write_one(self, k: int) -> None:
        """Lines of iteration k alone."""
        self._write(k, k + 1)

    def _report(self, k: int, t: int, step_s: float) -> None:
        if self.w.topo.ranks > _STRAGGLER_REPORTS_RANKS_MAX:
            return
        work = [float(own) for own in self.work_s[k]]
        s = Step(self.number(k), self.total, 0.0, 0.0, 0.0, step_s, 0.0, 0.0)
        lines = list(self.framework.spread(self.w, t + 4 * MS, s, work))
        self.w.say_all(0, t + 4 * MS, lines, self.number(k))

    def checkpoint(self, number: int, t: int, stuck: set[int] | None = None) -> int:
        """Each writer says it begins and, unless stuck, that it is done. Returns the last's time."""
        w, framework, last = self.w, self.framework, t
        path = f"/lustre/ckpt/{w.run_id}/iter_{number:07d}"
        writers = [0] if not w.scene.per_rank and stuck is None else list(range(w.topo.ranks))
        for rank in writers:
            t0 = t + int(w.rng.uniform(1, 9) * MS)
            text = f"saving checkpoint at iteration {number} to {path} (shard {rank})"
            w.say(rank, t0, framework.note(w, rank, t0, "INFO", text), number, "stdout")
            if stuck and rank in stuck:
                continue
            took = float(w.rng.gamma(20, 0.15))
            t1 = t0 + int(took * SECOND)
            text = f"saved checkpoint shard {rank} at iteration {number} in {took:.2f} s"
            w.say(rank, t1, framework.note(w, rank, t1, "INFO", text), number, "stdout")
            last = max(last, t1)
        return last

    def time_of(self, k: int) -> int:
        """A moment in the middle of iteration k."""
        begin = self.start_ns if k == 0 else int(self.end_ns[k - 1])
        return begin + int((int(self.end_ns[k]) - begin) * self.w.rng.uniform(0.3, 0.7))


def make_training(w: World, start_ns: int, first: int | None = None) -> Training:
    """A healthy attempt's iterations, not yet written. Stories bend its arrays, then settle it."""
    rng, ranks = w.rng, w.topo.ranks
    framework = FRAMEWORKS[w.scene.framework]
    count = int(rng.integers(24, 56)) if ranks <= 512 else int(rng.integers(14, 24))
    base = float(rng.uniform(0.4, 6.0))
    work = base * rng.lognormal(0.0, 0.008, (count, ranks))
    work *= 1 + rng.normal(0, 0.006, ranks)[None, :]  # parts differ, and always the same way
    work[0] *= rng.uniform(1.5, 6)  # compilation, warm-up
    if rng.random() < 0.4:  # now and then everything is slow: a garbage collection, the file system
        work[rng.integers(1, count, 2)] *= rng.uniform(1.2, 1.8)
    if rng.random() < 0.5:  # and now and then one rank is
        for _ in range(int(rng.integers(1, 4))):
            work[int(rng.integers(1, count)), int(rng.integers(ranks))] *= rng.uniform(1.3, 3)
    number = framework.first if first is None else first
    steps = number + np.arange(count) * framework.every
    curve = 2.1 + 8.4 * np.exp(-(steps + 1) / 40) + rng.normal(0, 0.03, count)
    same = w.scene.framework in ("titan", "megatron", "nemo")  # already averaged over ranks
    spread = 0.0 if same else 0.15
    loss = curve[:, None] + rng.normal(0, 1, (count, ranks)) * spread
    norm = np.repeat(rng.lognormal(0.2, 0.25, (count, 1)), ranks, axis=1)
    if framework.name == "megatron" and first is None and rng.random() < 0.3:
        norm[0] = np.inf  # the loss scale is still too large; the iteration is skipped
    every = framework.every * int(rng.integers(8, 20))
    t = Training(
        w, number, max(1000, number * 10), work, np.abs(loss), norm, start_ns, max(every, 1)
    )
    t.report_stragglers = framework.name in ("megatron", "nemo") and w.chance(0.4)
    t.settle()
    return t
