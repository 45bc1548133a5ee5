"""Which rows of a segment another one answers: lines stored twice are scanned once.

Segments are taken in the order of their index keys; the first that holds a line answers for it, on
every reader alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ranklog.model.index import StreamEntry

Ranges = list[tuple[int, int]]


def skipped_ranges(
    segments: Mapping[int, Sequence[StreamEntry]],
) -> dict[int, list[tuple[int, int, int]]]:
    """Segment number -> (stream position, first seq, end seq) to skip; only where there are any."""
    doubtful = _out_of_order(segments.values())
    held: dict[str, list[tuple[int, int, int, int]]] = {}
    for number, entries in segments.items() if doubtful else ():
        for position, entry in enumerate(entries):
            if entry.stream_id in doubtful:
                held.setdefault(entry.stream_id, []).extend(
                    (first, end, number, position) for first, end in entry.ranges
                )
    skips: dict[int, list[tuple[int, int, int]]] = {}
    for ranges in held.values():
        if not _overlaps(ranges):
            continue
        seen: Ranges = []
        for first, end, number, position in sorted(ranges, key=lambda r: (r[2], r[0])):
            twice = intersection([(first, end)], seen)
            if twice:
                skips.setdefault(number, []).extend((position, a, b) for a, b in twice)
            seen = union([*seen, (first, end)])
    return skips


def _out_of_order(segments: Iterable[Sequence[StreamEntry]]) -> set[str]:
    """Streams of which a range begins below the end of an earlier one: only these can overlap. Most
    streams ascend from segment to segment, and there are hundreds of them in each."""
    reached: dict[str, int] = {}
    found = set()
    for entries in segments:
        for entry in entries:
            stream_id = entry.stream_id
            for first, end in entry.ranges:
                if first < reached.get(stream_id, 0):
                    found.add(stream_id)
                else:
                    reached[stream_id] = end
    return found


def _overlaps(ranges: Sequence[tuple[int, int, int, int]]) -> bool:
    reached = -1
    for first, end, *_ in sorted(ranges):
        if first < reached:
            return True
        reached = max(reached, end)
    return False


def is_covered(entries: Sequence[StreamEntry], skip: Sequence[tuple[int, int, int]]) -> bool:
    """Whether every row of a segment is to be skipped."""
    ranges: dict[int, Ranges] = {}
    for position, first, end in skip:
        ranges.setdefault(position, []).append((first, end))
    return all(
        not difference(entry.ranges, union(ranges.get(position, [])))
        for position, entry in enumerate(entries)
    )


def union(ranges: Sequence[tuple[int, int]]) -> Ranges:
    """Half-open ranges, sorted and coalesced."""
    joined: Ranges = []
    for first, end in sorted(ranges):
        if joined and first <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        elif end > first:
            joined.append((first, end))
    return joined


def intersection(a: Sequence[tuple[int, int]], b: Sequence[tuple[int, int]]) -> Ranges:
    """What is in both; each sorted and coalesced."""
    found: Ranges = []
    i = j = 0
    while i < len(a) and j < len(b):
        first, end = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if first < end:
            found.append((first, end))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return found


def difference(a: Sequence[tuple[int, int]], b: Sequence[tuple[int, int]]) -> Ranges:
    """What is in `a` and not in `b`; each sorted and coalesced."""
    left: Ranges = []
    for first, end in a:
        for low, high in b:
            if high <= first:
                continue
            if low >= end:
                break
            if first < low:
                left.append((first, low))
            first = high
        if first < end:
            left.append((first, end))
    return left
