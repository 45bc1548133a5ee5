"""Lists of like values as an index stores them, small and quick to unpack. Pure.

A column is [0, value] where all values are equal, [2, integers] for integers, else [1, list].
Integers are [count, base, width, ascending, data]: what each exceeds the base by, or, where they
ascend, the value before it, in `width` bytes; first the low byte of each, then the next.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

_CONSTANT, _LIST, _INTEGERS = 0, 1, 2
_BYTES = 8
_INTEGERS_MIN = 8  # fewer are smaller as they are
_WIDTH_MAX = 3  # wider ones, such as times, repeat: zstd finds them better as they are
_FORMATS = {1: "B", 2: "H", 4: "I", 8: "Q"}


def pack_column(values: Sequence[Any]) -> list[Any]:
    """See the module; equal values are of one type."""
    first = values[0] if values else None
    if all(value == first and type(value) is type(first) for value in values):
        return [_CONSTANT, first]
    if len(values) >= _INTEGERS_MIN and all(type(value) is int for value in values):
        packed = pack_integers(values)
        if packed[2] <= _WIDTH_MAX:
            return [_INTEGERS, packed]
    return [_LIST, list(values)]


def unpack_column(column: Sequence[Any], count: int) -> Sequence[Any]:
    """Inverse of `pack_column`. Raises ValueError, TypeError on damage."""
    form, values = column
    if form == _CONSTANT:
        return [values] * count
    return unpack_integers(values) if form == _INTEGERS else values


def pack_integers(values: Sequence[int]) -> list[Any]:
    """See the module; values are int64."""
    if not values:
        return [0, 0, 0, False, b""]
    base, ascending = values[0], all(a <= b for a, b in pairwise(values))
    if ascending:
        above = [0, *(b - a for a, b in pairwise(values))]
    else:
        base = min(values)
        above = [value - base for value in values]
    width = (max(above).bit_length() + 7) // 8
    data = struct.pack(f"<{len(above)}Q", *above)
    planes = b"".join(data[at::_BYTES] for at in range(width))
    return [len(above), base, width, ascending, planes]


def unpack_integers(packed: Sequence[Any]) -> Sequence[int]:
    """Inverse of `pack_integers`. Raises ValueError, TypeError on damage."""
    count, base, width, ascending, planes = packed
    if len(planes) != count * width or not 0 <= width <= _BYTES:
        raise ValueError("integers are cut")
    if not width:
        return [base] * count
    size = 1 << (width - 1).bit_length()
    data = bytearray(size * count)
    for at in range(width):
        data[at::size] = planes[at * count : (at + 1) * count]
    above: Sequence[int] = struct.unpack(f"<{count}{_FORMATS[size]}", data)
    if ascending:
        return list(accumulate(above[1:], initial=base))
    return [base + value for value in above] if base else above


def unpack_int32s(data: bytes) -> Sequence[int]:
    """Integers as version 1 of the index has them. Raises struct.error on damage."""
    return struct.unpack(f"<{len(data) // 4}i", data)


def pack_pairs(pairs: Sequence[tuple[int, int]]) -> list[Any]:
    """Firsts and seconds, each as integers; [] for none."""
    if not pairs:
        return []
    return [
        pack_integers([first for first, _ in pairs]),
        pack_integers([last for _, last in pairs]),
    ]


def unpack_pairs(packed: Sequence[Any]) -> tuple[tuple[int, int], ...]:
    """Inverse of `pack_pairs`. Raises ValueError, TypeError on damage."""
    if not packed:
        return ()
    firsts, seconds = packed
    return tuple(zip(unpack_integers(firsts), unpack_integers(seconds), strict=True))
