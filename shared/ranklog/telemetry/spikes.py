"""Values that stand out of what came just before them in their own series, for many series at once.

The same values as `plan/spikes`, which needs no numpy; a test holds the two together.
"""

from __future__ import annotations

import numpy as np

from ranklog.limits import SPIKE_WINDOW_VALUES, SPIKE_WINDOW_VALUES_MIN
from ranklog.telemetry.running import running
from ranklog.telemetry.table import F64, I64, Mask

SPREAD_FLOOR = 1e-6


def spike_mask(value: F64, starts: I64, factor: float, *, ratio: bool = False) -> Mask:
    """bool[n]: farther from the running median than `factor` running MADs, or with `ratio` larger in
    size than `factor` times the median. NaN is never one; an infinity is, once there is a median."""
    middle, spread = running(value, starts, SPIKE_WINDOW_VALUES, SPIKE_WINDOW_VALUES_MIN)
    known = ~np.isnan(middle)
    with np.errstate(invalid="ignore", over="ignore"):
        if ratio:
            out = (np.abs(value) > factor * np.abs(middle)) & (value != middle)
        else:
            floor = np.maximum(spread, SPREAD_FLOOR * np.abs(middle))
            out = np.abs(value - middle) > factor * floor
    found: Mask = known & (out | np.isinf(value)) & ~np.isnan(value)
    return found
