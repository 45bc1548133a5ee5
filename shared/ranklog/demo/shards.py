"""The data: one CSV file per rank, label first; and the damage that one of them has."""

from __future__ import annotations

import math
import random
from pathlib import Path

FEATURES = 16
ROWS = 6_400
DAMAGED_ROW = 4_720


def write_shards(folder: Path, world_size: int, *, damaged: int | None) -> None:
    """Points of a noisy linear rule. In the damaged rank's shard one feature is `nan`."""
    source = random.Random(20_240)
    rule = [source.gauss(0, 1) for _ in range(FEATURES)]
    for rank in range(world_size):
        rows = [_row(source, rule) for _ in range(ROWS)]
        if rank == damaged:
            # What a division by a standard deviation of zero leaves behind upstream.
            rows[DAMAGED_ROW][1 + 5] = math.nan
        text = "\n".join(",".join(f"{value:.4f}" for value in row) for row in rows)
        shard_path(folder, rank).write_text(text + "\n")


def shard_path(folder: Path, rank: int) -> Path:
    """Where a rank's shard is."""
    return folder / f"shard-{rank}.csv"


def _row(source: random.Random, rule: list[float]) -> list[float]:
    features = [source.gauss(0, 1) for _ in range(FEATURES)]
    score = sum(weight * value for weight, value in zip(rule, features, strict=True))
    label = 1.0 if score + source.gauss(0, 0.5) > 0 else 0.0
    return [label, *features]
