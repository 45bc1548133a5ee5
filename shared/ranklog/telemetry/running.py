"""Running median and median absolute deviation of what came before, for many series at once.

Shapes: n values in g series one behind the other, `starts` int64[g + 1]. Of the value at i the window
is the up to `width` finite values before it in its own series. Where it has fewer than `least`, what
comes back is NaN. Where more than half of the window is equal the MAD is 0 and the mean absolute
deviation stands in for it.
"""

from __future__ import annotations

import numpy as np

from ranklog.telemetry.table import F64, I64, Mask

# Rows of windows that are in memory at a time: 64 values of 8 bytes each, twice.
_ROWS = 65_536


def running(value: F64, starts: I64, width: int, least: int) -> tuple[F64, F64]:
    """(median, spread) float64[n]."""
    finite = np.isfinite(value)
    seen = np.concatenate([[0], np.cumsum(finite)])  # finite values of all series
    before, first = seen[:-1], np.repeat(seen[starts[:-1]], np.diff(starts))
    count = np.minimum(before - first, width)
    numbers = value[finite]
    median, spread = np.full(len(value), np.nan), np.full(len(value), np.nan)
    rows = np.flatnonzero(count >= least)
    for at in range(0, len(rows), _ROWS):
        part = rows[at : at + _ROWS]
        median[part], spread[part] = _window(numbers, before[part], count[part], width)
    return median, spread


def _window(numbers: F64, end: I64, count: I64, width: int) -> tuple[F64, F64]:
    """Of numbers[end - count : end], each."""
    place = end[:, None] - 1 - np.arange(width)
    inside: Mask = np.arange(width) < count[:, None]
    window = np.where(inside, numbers[np.maximum(place, 0)], np.inf)
    middle = _median(np.sort(window, axis=1), count)
    with np.errstate(invalid="ignore", over="ignore"):
        away = np.where(inside, np.abs(window - middle[:, None]), np.inf)
    spread = _median(np.sort(away, axis=1), count)
    flat = spread == 0
    if flat.any():
        spread[flat] = np.where(inside[flat], away[flat], 0.0).sum(axis=1) / count[flat]
    return middle, spread


def _median(ordered: F64, count: I64) -> F64:
    rows = np.arange(len(ordered))
    low, high = ordered[rows, (count - 1) // 2], ordered[rows, count // 2]
    found: F64 = np.where(low == high, low, (low + high) / 2)
    return found
