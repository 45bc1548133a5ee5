"""Checksums of what a scan reads, on their way to it.

The column chunks of a scan tile its byte ranges, so that a part is its length and its CRC-32: base64
of uint32s, little-endian, of the Parquet footer's CRC-32 and then (length, CRC-32) per chunk.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from ranklog.errors import Corrupt
from ranklog.plan.tasks import Pairs, SegmentScan

# (offset, end, CRC-32) in the object
Part: TypeAlias = "tuple[int, int, int]"


def pack_sums(footer: int, parts: Iterable[Part]) -> str:
    """`parts` in the order of `checked_ranges`, whose first is the footer."""
    numbers = [footer]
    for start, end, crc in parts:
        numbers += (end - start, crc)
    return base64.b64encode(struct.pack(f"<{len(numbers)}I", *numbers)).decode()


def checked_ranges(scan: SegmentScan) -> Pairs:
    """Byte ranges of the scan that its checksums cover: all that it may read."""
    return ((scan.length - scan.footer, scan.length), *scan.small, *scan.text, *scan.late)


def unpack_sums(scan: SegmentScan) -> list[Part]:
    """The parts of the scan; none where its index has no sums. Raises Corrupt."""
    if not scan.sums:
        return []
    try:
        data = base64.b64decode(scan.sums, validate=True)
        footer, *numbers = struct.unpack(f"<{len(data) // 4}I", data)
        first, *ranges = checked_ranges(scan)
        return [(*first, footer), *_tiles(ranges, numbers)]
    except (binascii.Error, ValueError, struct.error) as error:
        raise Corrupt(f"checksums of {scan.key} do not fit its task") from error


def _tiles(ranges: Sequence[tuple[int, int]], numbers: Sequence[int]) -> Iterator[Part]:
    """Chunks in the ranges. Raises ValueError where they do not fill them."""
    sums = zip(numbers[::2], numbers[1::2], strict=True)
    for start, end in ranges:
        while start < end:
            length, crc = next(sums, (0, 0))
            if not 0 < length <= end - start:
                raise ValueError("a chunk does not fit its range")
            yield start, start + length, crc
            start += length
    if next(sums, None) is not None:
        raise ValueError("more chunks than ranges hold")
