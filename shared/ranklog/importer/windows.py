"""Slices of lines as Arrow arrays, so that RE2 runs over many lines at once.

Arrays are binary: RE2 then works on bytes, and a cut inside a character does no harm.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ranklog.importer.lines import I64, Flags

# How much of a body is looked at for its head. MLLOG's file and line stand behind its value.
HEAD_WINDOW_BYTES = 1_024


def slices(text: Any, starts: I64, ends: I64) -> Any:
    """text[starts[i]:ends[i]] as a binary array; the slices ascend and do not overlap.

    `text`: bytes or an Arrow buffer.
    """
    count = len(starts)
    if not count:
        return pa.array([], pa.binary())
    offsets = np.empty(2 * count, np.int32)
    offsets[0::2], offsets[1::2] = starts, ends
    pieces = pa.BinaryArray.from_buffers(
        pa.binary(),
        2 * count - 1,
        [None, pa.py_buffer(offsets), text if isinstance(text, pa.Buffer) else pa.py_buffer(text)],
    )
    return pieces.take(pa.array(np.arange(0, 2 * count - 1, 2, dtype=np.int32)))


def cut(values: Any, start: int, stop: int | None = None) -> Any:
    """Bytes [start, stop) of each value. (pyarrow 26's binary_slice fails on short values.)"""
    if not len(values):
        return values
    offsets, content = buffers(values)
    begins, ends = offsets[:-1], offsets[1:]
    stops = ends if stop is None else np.minimum(begins + stop, ends)
    return slices(content, np.minimum(begins + start, stops), stops)


def buffers(values: Any) -> tuple[I64, Any]:
    """Offsets (n + 1) and content of a binary array; nulls are empty."""
    if values.null_count:
        values = values.fill_null(b"")
    _, offsets, content = values.buffers()
    numbers = np.frombuffer(offsets, np.int32)[values.offset :][: len(values) + 1]
    return numbers.astype(np.int64), content if content is not None else pa.py_buffer(b"")


def extract(array: Any, pattern: str) -> tuple[Flags, dict[str, Any]]:
    """Which values match, and the named groups' values (null where the value does not match)."""
    found = pc.extract_regex(array, pattern=pattern)
    names = [found.type.field(i).name for i in range(found.type.num_fields)]
    matched = to_flags(found.is_valid())
    return matched, {name: pc.struct_field(found, name) for name in names}


def matches(array: Any, pattern: str) -> Flags:
    """Which values contain a match."""
    return to_flags(pc.match_substring_regex(array, pattern=pattern))


def to_flags(array: Any) -> Flags:
    """A boolean array as numpy; null is False."""
    return np.asarray(array.fill_null(False).to_numpy(zero_copy_only=False), np.bool_)


def to_integers(array: Any, missing: int) -> I64:
    """Decimal digits as int64; `missing` where null, empty, or over 18 digits."""
    fits = pc.and_(
        pc.greater(pc.binary_length(array), 0), pc.less_equal(pc.binary_length(array), 18)
    )
    digits = pc.if_else(fits, array, None).cast(pa.string())
    values = digits.cast(pa.int64()).fill_null(missing)
    return np.asarray(values.to_numpy(zero_copy_only=False), np.int64)


def lengths(array: Any) -> I64:
    """Bytes of each value; 0 where null."""
    return np.asarray(pc.binary_length(array).fill_null(0).to_numpy(zero_copy_only=False), np.int64)


def factorise(array: Any) -> tuple[npt.NDArray[np.int32], list[bytes | None]]:
    """(code per value, distinct values); null has a code of its own."""
    encoded = array.dictionary_encode(null_encoding="encode")
    codes = np.asarray(encoded.indices.to_numpy(zero_copy_only=False), np.int32)
    return codes, encoded.dictionary.to_pylist()
