"""Values that stand out of what came just before them in their own series. Robust, one pass.

A value is compared with the median and the median absolute deviation (MAD) of up to
SPIKE_WINDOW_VALUES finite values before it. Where more than half of them are equal the MAD is 0 and
the mean absolute deviation stands in for it; both count as at least one millionth of the median's
size, so that a last digit is no spike.
"""

from __future__ import annotations

import bisect
import math
from collections import deque
from collections.abc import Sequence

from ranklog.limits import SPIKE_WINDOW_VALUES, SPIKE_WINDOW_VALUES_MIN

_SPREAD_FLOOR = 1e-6


def spikes(values: Sequence[float], factor: float, *, ratio: bool = False) -> list[int]:
    """Positions of spikes: farther from the median than `factor` MADs, or with `ratio`, larger in
    size than `factor` times the median. NaN is never one; an infinity always is."""
    window: deque[float] = deque()
    ordered: list[float] = []
    found: list[int] = []
    for i, value in enumerate(values):
        if len(window) >= SPIKE_WINDOW_VALUES_MIN and _stands_out(value, ordered, factor, ratio):
            found.append(i)
        if math.isfinite(value):
            window.append(value)
            bisect.insort(ordered, value)
            if len(window) > SPIKE_WINDOW_VALUES:
                del ordered[bisect.bisect_left(ordered, window.popleft())]
    return found


def _stands_out(value: float, ordered: Sequence[float], factor: float, ratio: bool) -> bool:
    if not math.isfinite(value):
        return math.isinf(value)
    middle = _median(ordered)
    if ratio:
        return abs(value) > factor * abs(middle) and value != middle
    deviations = sorted(abs(item - middle) for item in ordered)
    spread = _median(deviations) or sum(deviations) / len(deviations)
    return abs(value - middle) > factor * max(spread, _SPREAD_FLOOR * abs(middle))


def _median(ordered: Sequence[float]) -> float:
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
