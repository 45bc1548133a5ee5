"""One rank of the demo: `python -m ranklog.demo.train FOLDER`, RANK and WORLD_SIZE in the environment.

The lines about ranklog are `init`, `iteration` and `phase`; all others are what any job has.
"""

from __future__ import annotations

import json
import logging
import math
import os
import sys
import time
from pathlib import Path

import ranklog
from ranklog.demo.collective import AllReduce, CollectiveError
from ranklog.demo.dataloader import Batch, batches
from ranklog.demo.shards import FEATURES, shard_path

EPOCHS = 2
BATCH = 64
LEARNING_RATE = 0.5

logger = logging.getLogger("trainer")


def loss_and_gradient(weights: list[float], batch: Batch) -> tuple[float, list[float]]:
    """Mean logistic loss of a batch and its gradient."""
    loss, gradient = 0.0, [0.0] * FEATURES
    for label, features in batch:
        score = sum(weight * value for weight, value in zip(weights, features, strict=True))
        loss += max(score, 0.0) - score * label + math.log1p(math.exp(-abs(score)))
        error = 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, score)))) - label
        gradient = [g + error * value for g, value in zip(gradient, features, strict=True)]
    return loss / len(batch), [value / len(batch) for value in gradient]


def train(folder: Path, rank: int, group: AllReduce) -> None:
    """All epochs; every rank ends with the same weights."""
    weights = [0.0] * FEATURES
    iteration = 0
    for epoch in range(EPOCHS):
        for batch in batches(shard_path(folder, rank), BATCH):
            ranklog.iteration(iteration)
            weights = step(iteration, weights, batch, group)
            if rank == 0:
                print(f"\repoch {epoch} iteration {iteration}", end="", file=sys.stderr)
            iteration += 1
        if rank == 0:
            print(file=sys.stderr)
            print(f"epoch {epoch} done after {iteration} iterations")
            save_checkpoint(folder, epoch, weights)


def step(iteration: int, weights: list[float], batch: Batch, group: AllReduce) -> list[float]:
    """One iteration: local gradient, all-reduce, update."""
    start = time.perf_counter()
    loss, gradient = loss_and_gradient(weights, batch)
    if not math.isfinite(loss):
        raise FloatingPointError(f"loss is {loss} at iteration {iteration}")
    mean_loss, *mean_gradient = group.mean(iteration, [loss, *gradient])
    rate = LEARNING_RATE / math.sqrt(1 + iteration / 20)
    norm = math.hypot(*mean_gradient)
    logger.info(
        "iteration %d loss %.4f local loss %.4f grad norm %.4f lr %.4f in %.2f ms",
        iteration,
        mean_loss,
        loss,
        norm,
        rate,
        1_000 * (time.perf_counter() - start),
        extra={"loss": mean_loss, "grad_norm": norm},
    )
    return [w - rate * g for w, g in zip(weights, mean_gradient, strict=True)]


def save_checkpoint(folder: Path, epoch: int, weights: list[float]) -> None:
    """Write the weights, whole or not at all."""
    with ranklog.phase("checkpoint"):
        path = folder / f"checkpoint-{epoch}.json"
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps({"epoch": epoch, "weights": weights}))
        partial.rename(path)
        logger.info("saved %s (%d bytes)", path.name, path.stat().st_size)


def main() -> int:
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    ranklog.init()
    print(
        f"rank {rank} of {world_size} started, pid {os.getpid()}, python {sys.version.split()[0]}"
    )
    folder = Path(sys.argv[1])
    group = AllReduce(rank, world_size, folder / "meeting")
    logger.info("joined a group of %d ranks", world_size)
    # An exception of our own leaves the group open until the process ends, as training jobs do:
    # the peers learn of it after it was logged.
    try:
        train(folder, rank, group)
    except CollectiveError:
        logger.exception("training stopped: a collective failed")
        group.close()
        return 1
    group.close()
    logger.info("training finished")
    return 0


if __name__ == "__main__":
    sys.exit(main())
