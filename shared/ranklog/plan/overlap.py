"""Which rows of a segment another one answers: lines stored twice are scanned once.

Of two segments that hold a line the one answers whose row is of the frame with the smaller hash
(`layout.claims`), on every reader alike; of one frame's, the first in the order of index keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ranklog.layout.claims import Claim, are_rivals, layers
from ranklog.model.index import StreamEntry

Ranges = list[tuple[int, int]]


@dataclass(slots=True)
class Overlaps:
    """`skips`: segment number -> (stream position, first seq, end seq) that others answer for, only
    where there are any. `contested`: by stream_id the lines whose rows differ."""

    skips: dict[int, list[tuple[int, int, int]]] = field(default_factory=dict)
    contested: dict[str, Ranges] = field(default_factory=dict)


def overlaps(
    segments: Mapping[int, Sequence[StreamEntry]],
    claims: Callable[[int, StreamEntry], Sequence[Claim]],
) -> Overlaps:
    """What segments have in common. `claims`: whose the rows of an entry are, by segment number; asked
    only of streams that overlap."""
    doubtful = _out_of_order(segments.values())
    held: dict[str, list[tuple[int, int, StreamEntry]]] = {}
    for number, entries in segments.items() if doubtful else ():
        for position, entry in enumerate(entries):
            if entry.stream_id in doubtful:
                held.setdefault(entry.stream_id, []).append((number, position, entry))
    found = Overlaps()
    for stream_id, holders in held.items():
        if _overlap(pair for _, _, entry in holders for pair in entry.ranges):
            _decide(stream_id, holders, claims, found)
    return found


def _decide(
    stream_id: str,
    holders: Sequence[tuple[int, int, StreamEntry]],
    claims: Callable[[int, StreamEntry], Sequence[Claim]],
    found: Overlaps,
) -> None:
    """Add what is to be skipped of one stream."""
    pieces = [
        (claim.first, claim.end, (claim, number, position))
        for number, position, entry in holders
        for claim in claims(number, entry)
    ]
    skipped: dict[tuple[int, int], Ranges] = {}
    contested: Ranges = []
    for first, end, there in layers(pieces):
        if len(there) == 1:
            continue
        winner = min(there, key=lambda one: (one[0].frame, one[1]))
        for one in there:
            if one is not winner:
                skipped.setdefault(one[1:], []).append((first, end))
        if are_rivals([one[0] for one in there]):
            contested.append((first, end))
    for (number, position), ranges in sorted(skipped.items()):
        twice = [(position, first, end) for first, end in union(ranges)]
        found.skips.setdefault(number, []).extend(twice)
    if contested:
        found.contested[stream_id] = union(contested)


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


def _overlap(ranges: Iterable[tuple[int, int]]) -> bool:
    reached = -1
    for first, end in sorted(ranges):
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
