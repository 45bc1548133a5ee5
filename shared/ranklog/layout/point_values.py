"""Values as short decimals: integers take a third of the bytes of doubles, and give back their bits.

What was measured has few digits: a loss is printed with six, a counter is an integer. Of each series
the smallest power of ten is looked for that makes its values integers; a value counts only if it is
exactly the double nearest to digits / 10^scale (and no negative zero), so that one division gives it back.

Shapes: v values in the order of points; runs of one series, `starts` I64[r] ascending from 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ranklog.layout.point_rows import F64
from ranklog.layout.point_schema import SCALE_MAX
from ranklog.layout.rows import I32, I64

# Significant digits that are tried, fewest first.
_DIGITS = (6, 9, 15)
_POWERS = 10.0 ** np.arange(SCALE_MAX + 1)
# Beyond it not every integer is a double.
_EXACT = 2.0**53
# Of a run, so many values at most are looked at to find its digits.
_SAMPLE = 8


@dataclass(frozen=True, slots=True)
class Decimals:
    """`digits` I64[v], `scale` I32[v], and `exact` bool[v]: which values they are."""

    digits: I64
    scale: I32
    exact: npt.NDArray[np.bool_]


def as_digits(values: F64, starts: I64) -> Decimals:
    """Decimals of each run; a run whose values are none has scale 0."""
    sizes = np.diff(np.append(starts, len(values)))
    scales = _scales(values, starts, sizes)
    scale = np.repeat(scales, sizes)
    powers = _POWERS[scale]
    with np.errstate(over="ignore", invalid="ignore"):
        digits = np.rint(values * powers)
        exact = (digits / powers == values) & (np.abs(digits) < _EXACT)
    exact &= (digits != 0) | ~np.signbit(values)
    return Decimals(np.where(exact, digits, 0).astype(np.int64), scale, exact)


def _scales(values: F64, starts: I64, sizes: I64) -> I32:
    """By run, the power of ten by which most of a sample of its values are integers."""
    found = np.zeros(len(starts), np.int32)
    open_ = np.arange(len(starts))
    for digits in _DIGITS:
        if not len(open_):
            break
        scale, fits = _try(values, starts[open_], sizes[open_], digits)
        found[open_[fits]] = scale[fits]
        open_ = open_[~fits]
    return found


def _try(values: F64, starts: I64, sizes: I64, digits: int) -> tuple[I32, npt.NDArray[np.bool_]]:
    """The scale that gives the sample's values so many digits, and whether it gives them exactly."""
    step = np.maximum(sizes // _SAMPLE, 1)
    scale = np.zeros(len(starts), np.int32)
    samples = [values[starts + np.minimum(i * step, sizes - 1)] for i in range(_SAMPLE)]
    for sample in samples:
        scale = np.maximum(scale, _scale_of(sample, digits))
    powers = _POWERS[scale]
    exact = np.zeros(len(starts), np.int32)
    with np.errstate(over="ignore", invalid="ignore"):
        for sample in samples:
            whole = np.rint(sample * powers)
            exact += (whole / powers == sample) & (np.abs(whole) < _EXACT)
    return scale, exact * 2 > _SAMPLE


def _scale_of(values: F64, digits: int) -> I32:
    """The power of ten by which each value has so many digits before the point."""
    size = np.abs(values)
    usable = np.isfinite(size) & (size > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        magnitude = np.floor(np.log10(np.where(usable, size, 1.0))).astype(np.int32)
    return np.where(usable, np.clip(digits - 1 - magnitude, 0, SCALE_MAX), 0).astype(np.int32)
