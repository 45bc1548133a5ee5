"""Between numpy and Arrow, by their buffers: no copy, and no look for pandas.

Arrow's own conversions import pandas where it is installed, a quarter of a second of a process that only
wants a few lines.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_NAMES = {"double": "float64", "float": "float32", "halffloat": "float16"}


def indices(places: npt.NDArray[Any]) -> Any:
    """Arrow int64 of these places, for `take`."""
    values = np.ascontiguousarray(places, np.int64)
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(values)])


def numbers(array: Any) -> npt.NDArray[Any]:
    """The values of an Arrow array of numbers that has no nulls."""
    dtype = np.dtype(_NAMES.get(str(array.type), str(array.type)))
    if not len(array):
        return np.empty(0, dtype)
    return np.frombuffer(array.buffers()[1], dtype, len(array), array.offset * dtype.itemsize)


def flags(array: Any) -> npt.NDArray[np.bool_]:
    """The values of an Arrow array of booleans that has no nulls."""
    if not len(array):
        return np.empty(0, np.bool_)
    first, bits = array.offset // 8, np.frombuffer(array.buffers()[1], np.uint8)
    skipped = array.offset % 8
    found = np.unpackbits(bits[first:], count=skipped + len(array), bitorder="little")
    return found[skipped:].view(np.bool_)
