"""What `ranklog.tensor` adds to a training step on a CPU: `python -m tests.bench.tensor [--pairs 40]`.

A small model of torch (four layers of 512, a batch of 64), one tensor a layer and step. Blocks of steps
with and without the calls by turns, in the same process on one thread; the cost is the CPU time of the
thread. Printed are the median of the pairs' differences and its 95 % interval (bootstrap), with the
usual sampling (one iteration of ten) and with every iteration taken.
"""

from __future__ import annotations

import argparse
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import ranklog
from ranklog.produce import telemetry
from ranklog.produce.identity import Identity
from ranklog.produce.producer import Producer

WIDTH, LAYERS, BATCH, STEPS = 512, 4, 64, 40
MARK_PERCENT = 1.0
_BOOTSTRAPS = 2000


class Training:
    """Steps of a small model, with or without summaries of its activations."""

    def __init__(self) -> None:
        torch.manual_seed(1)
        layers: list[Any] = []
        for _ in range(LAYERS):
            layers += [torch.nn.Linear(WIDTH, WIDTH), torch.nn.GELU()]
        self._layers = torch.nn.ModuleList(layers)
        self._optimizer = torch.optim.AdamW(self._layers.parameters())
        self._batch = torch.randn(BATCH, WIDTH)
        self._number = 0

    def block(self, tell: Callable[[int, Any], None]) -> float:
        """Seconds of this thread's CPU for STEPS steps."""
        start = time.thread_time()
        for _ in range(STEPS):
            self._number += 1
            ranklog.iteration(self._number)
            x = self._batch
            for number, layer in enumerate(self._layers):
                x = layer(x)
                if number % 2:
                    tell(number, x)
            loss = (x - self._batch).square().mean()
            self._optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self._optimizer.step()
        return time.thread_time() - start


def _silent(number: int, x: Any) -> None: ...


def added(training: Training, every: int | None, pairs: int) -> tuple[float, float, float, float]:
    """(median of what is added in percent, its 95 % interval, ms a step without)."""

    def tell(number: int, x: Any) -> None:
        ranklog.tensor("activation", x, every=every, layer=number)

    percents, without = [], []
    for pair in range(pairs):
        first_on = pair % 2 == 0
        one = training.block(tell if first_on else _silent)
        other = training.block(_silent if first_on else tell)
        on, off = (one, other) if first_on else (other, one)
        percents.append(100 * (on - off) / off)
        without.append(off / STEPS * 1e3)
    rng = random.Random(1)
    medians = sorted(statistics.median(rng.choices(percents, k=pairs)) for _ in range(_BOOTSTRAPS))
    low, high = medians[_BOOTSTRAPS // 40], medians[-_BOOTSTRAPS // 40]
    return statistics.median(percents), low, high, statistics.median(without)


def main() -> int:
    """Exit 1 where the usual sampling adds more than the mark."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=40)
    pairs = parser.parse_args().pairs
    torch.set_num_threads(1)
    folder = Path(tempfile.mkdtemp(prefix="ranklog-tensor-"))
    identity = Identity("default", "bench", "1", 0, "here", 0, 0, 1)
    producer = Producer(folder / "spool", identity, rings=folder / "rings")
    telemetry.attach(producer)
    try:
        training = Training()
        training.block(_silent)
        kept = True
        for what, every, mark in (
            ("one iteration of ten (usual)", None, MARK_PERCENT),
            ("every iteration", 1, None),
        ):
            middle, low, high, step_ms = added(training, every, pairs)
            beside = f", mark {mark:g} %" if mark else ""
            print(
                f"{what}: {middle:+.2f} % of a step of {step_ms:.2f} ms "
                f"(95 %: {low:+.2f} to {high:+.2f} %, {pairs} pairs){beside}"
            )
            kept &= mark is None or middle <= mark
    finally:
        telemetry.attach(None)
        producer.close()
        shutil.rmtree(folder, ignore_errors=True)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
