"""What would make an on-demand stream's bytes fewer, measured: a higher level of zstd, and frames that hold more.

Both are paid for by the hosts: the one with CPU, the other with time until a line is on its way.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import islice
from typing import Any

from ranklog.model.frame import Frame
from ranklog.objectives import prices
from ranklog.stream.frames import encode_frame
from tests.bench.corpus import corpus
from tests.bench.scale.bill import KEPT_DAYS, RETENTION_DAYS

LEVELS = (1, 6, 9, 19)
FRAME_LINES = (64, 190, 2_048)
_LINES = 40_000
# Of text that goes through at a TB: put, read once, kept beyond the first day.
_USD_PER_GB = (
    prices.KINESIS_IN.usd
    + prices.KINESIS_OUT.usd
    + prices.KINESIS_RETAINED.usd * (RETENTION_DAYS - 1) / KEPT_DAYS
)


def approaches() -> list[dict[str, Any]]:
    """By lines of a frame and level: bytes for one of text, ns of CPU for it, and $ of an on-demand stream for
    a TB of text, records' rounding aside."""
    found = []
    for lines in FRAME_LINES:
        frames = list(islice(corpus(_LINES, frame_rows=lines), _LINES // lines))
        text = sum(len(frame.text) + frame.rows for frame in frames)
        for level in LEVELS:
            spent_s, size = _encoded(frames, level)
            found.append(
                {
                    "frame_lines": lines,
                    "level": level,
                    "ratio": size / text,
                    "cpu_ns": spent_s / text * 1e9,
                    "usd_per_tb": size / text * 1e12 / prices.GB * _USD_PER_GB,
                }
            )
    return found


def _encoded(frames: Sequence[Frame], level: int) -> tuple[float, int]:
    """(CPU seconds, bytes) of all: the less of two tries, as others work beside it."""
    spent = []
    for _ in range(2):
        started = time.process_time()
        size = sum(len(encode_frame(frame, level=level)) for frame in frames)
        spent.append(time.process_time() - started)
    return min(spent), size
