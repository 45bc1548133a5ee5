"""Reads a shard in batches. Stands for a library that logs as libraries do, and knows no ranklog."""

from __future__ import annotations

import csv
import logging
from collections.abc import Iterator
from pathlib import Path

logger = logging.getLogger("dataloader")
USUAL = 8.0

Batch = list[tuple[float, list[float]]]


def batches(path: Path, size: int) -> Iterator[Batch]:
    """(label, features) of `size` rows at a time; odd values are reported and passed on."""
    logger.info("opening %s (%d bytes)", path.name, path.stat().st_size)
    batch: Batch = []
    with path.open(newline="") as file:
        for row, fields in enumerate(csv.reader(file)):
            label, *features = map(float, fields)
            for column, value in enumerate(features):
                if not -USUAL <= value <= USUAL:
                    logger.warning(
                        "%s row %d: feature %d is %r, usually within %g of 0",
                        path.name,
                        row,
                        column,
                        value,
                        USUAL,
                    )
            batch.append((label, features))
            if len(batch) == size:
                yield batch
                batch = []
    logger.debug("end of %s", path.name)
