"""Time of a line: the wall clock at start plus the monotonic clock, so that clock steps never show."""

from __future__ import annotations

import time
from time import monotonic_ns

OFFSET_NS = time.time_ns() - time.monotonic_ns()


def now_ns() -> int:
    """Nanoseconds since the epoch; never decreases within a process and its forks."""
    return OFFSET_NS + monotonic_ns()
