"""Floats that are short decimals, as Parquet's DECIMAL: integers take half the bytes of doubles.

A column qualifies only if every value is exactly the double nearest to k / 10^scale, so that a cast
to DOUBLE gives back the very bits. Losses, rates and times that were printed nearly always are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_PRECISION = 18
SCALE_MAX = 6
# Readers bring segments' columns to one scale: at the largest, every integer must still be a double.
_MAGNITUDE_MAX = 2.0**53 / 10.0**SCALE_MAX
_VALUES_MIN = 48
_SAMPLE = 64


def as_decimals(column: Any) -> Any:
    """The column of doubles as decimals, or as it is where that is not exact or not worth it."""
    present = column.is_valid().to_numpy(zero_copy_only=False)
    values = column.drop_null().to_numpy()
    if len(values) < _VALUES_MIN or not _in_range(values):
        return column
    scale = _scale(values[:: max(1, len(values) // _SAMPLE)])
    while scale is not None and scale <= SCALE_MAX:
        if (whole := _exact(values, scale)) is not None:
            return _array(whole, present, scale)
        scale += 1
    return column


def _in_range(values: npt.NDArray[np.float64]) -> bool:
    """Whether all are finite, small enough, and no negative zero, which no decimal is."""
    if not (np.abs(values) < _MAGNITUDE_MAX).all():  # NaN is not
        return False
    return not np.signbit(values[values == 0]).any()


def _scale(values: npt.NDArray[np.float64]) -> int | None:
    scales = range(SCALE_MAX + 1)
    return next((scale for scale in scales if _exact(values, scale) is not None), None)


def _exact(values: npt.NDArray[np.float64], scale: int) -> npt.NDArray[np.int64] | None:
    whole = np.rint(values * 10.0**scale)
    if not np.array_equal(whole / 10.0**scale, values):
        return None
    return whole.astype(np.int64)


def _array(whole: npt.NDArray[np.int64], present: npt.NDArray[np.bool_], scale: int) -> Any:
    """decimal128: two words, the high one the sign's; null where not present."""
    words = np.zeros((len(present), 2), np.int64)
    words[present, 0] = whole
    words[present, 1] = whole >> 63
    valid = None if present.all() else pa.py_buffer(np.packbits(present, bitorder="little"))
    buffers = [valid, pa.py_buffer(words)]
    return pa.Array.from_buffers(pa.decimal128(_PRECISION, scale), len(present), buffers)
