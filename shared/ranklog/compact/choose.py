"""Which indexes of a folder are merged with one another: small ones, late ones, ones with rows deleted.

A bound holds after each pass over a closed folder: of the segments under 16 MiB those that one merge
can take together have become one, so objects number at most 1 + (bytes stored / 16 MiB) per merge.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ranklog.compact.contents import Contents
from ranklog.compact.streams import Hidden
from ranklog.layout import keys
from ranklog.layout.bundle import COMPACTED, object_key
from ranklog.layout.index import SegmentIndex
from ranklog.limits import (
    COMPACT_HOUR_LAG_S,
    COMPACT_LATE_INDEXES_MIN,
    COMPACT_SEGMENT_BYTES_MAX,
    COMPACT_SPLIT_BYTES_MIN,
    COMPACT_TEXT_BYTES_MAX,
    DAY_NS,
    HOUR_NS,
    SECOND_NS,
)
from ranklog.plan.overlap import intersection


def is_closed(contents: Contents, now_ns: int) -> bool:
    """Whether the folder's hour, or its day of arrival, is over for good."""
    folder, lag_ns = contents.folder, COMPACT_HOUR_LAG_S * SECOND_NS
    if folder.hour is not None:
        return now_ns >= (folder.hour + 1) * HOUR_NS + lag_ns
    return folder.day < keys.day_text(max(0, now_ns - lag_ns)) and now_ns >= DAY_NS


def merges(contents: Contents, now_ns: int, hidden: Hidden) -> list[list[SegmentIndex]]:
    """Groups of live indexes, each in order of keys; what is alone stays as it is."""
    live = contents.live()
    touched = {index.key for index in live if has_hidden(index, hidden)}
    small = [index for index in live if _is_small(index)]
    fresh = [index for index in small if not _is_merged(index)]
    bytes_ = sum(_length(index) for index in small)
    piled = contents.folder.hour is None and len(fresh) >= COMPACT_LATE_INDEXES_MIN
    due = is_closed(contents, now_ns) or piled or bytes_ >= COMPACT_SEGMENT_BYTES_MAX
    taken = {index.key for index in small} if due and fresh else set()
    chosen = [index for index in live if index.key in taken or index.key in touched]
    return [
        group
        for group in _groups(chosen)
        if len(group) > 1 or any(index.key in touched for index in group)
    ]


def has_hidden(index: SegmentIndex, hidden: Hidden) -> bool:
    """Whether its segment holds rows that were deleted."""
    return any(
        intersection(entry.ranges, list(hidden(entry)))
        for entry in index.head.streams
        if entry.ranges
    )


def _is_merged(index: SegmentIndex) -> bool:
    return keys.parse_index_key(object_key(index.key)).source == COMPACTED


def _is_small(index: SegmentIndex) -> bool:
    """Level 0 up to half of what a merge takes; of level 1 what is not worth keeping apart."""
    if _is_merged(index):
        return _length(index) < COMPACT_SPLIT_BYTES_MIN
    return _length(index) < COMPACT_SEGMENT_BYTES_MAX // 2


def _length(index: SegmentIndex) -> int:
    segment = index.head.segment
    return 0 if segment is None else segment.length


def _groups(chosen: Iterable[SegmentIndex]) -> Sequence[list[SegmentIndex]]:
    groups: list[list[SegmentIndex]] = []
    stored = text = 0
    for index in chosen:
        stored += _length(index)
        text += index.head.text_bytes
        full = stored > COMPACT_SEGMENT_BYTES_MAX or text > COMPACT_TEXT_BYTES_MAX
        if full or not groups:
            groups.append([])
            stored, text = _length(index), index.head.text_bytes
        groups[-1].append(index)
    return groups
