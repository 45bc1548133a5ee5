"""Whatever overlaps, each line is answered by exactly one segment: the first that holds it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ranklog.model.index import StreamEntry
from ranklog.model.stream import Stream
from ranklog.plan.overlap import difference, intersection, skipped_ranges, union

STREAMS = [Stream("t", "r", "l", 0, "h", rank, rank, "stdout", "i") for rank in range(2)]
RANGES = st.lists(
    st.tuples(st.integers(0, 12), st.integers(1, 6)).map(lambda r: (r[0], r[0] + r[1])), max_size=4
).map(union)


def entry(stream: Stream, ranges: list[tuple[int, int]]) -> StreamEntry:
    lines = sum(end - first for first, end in ranges)
    return StreamEntry(stream, stream.stream_id, lines, 0, 0, 0, tuple(ranges))


def members(ranges: list[tuple[int, int]]) -> set[int]:
    return {number for first, end in ranges for number in range(first, end)}


@settings(deadline=None)
@given(st.lists(st.lists(RANGES, min_size=2, max_size=2), max_size=5))
def test_the_first_segment_that_holds_a_line_answers_for_it(
    segments: list[list[list[tuple[int, int]]]],
) -> None:
    tables = {
        number: [entry(stream, ranges) for stream, ranges in zip(STREAMS, held, strict=True)]
        for number, held in enumerate(segments)
    }
    skips = skipped_ranges(tables)
    seen: set[tuple[int, int]] = set()
    for number, held in enumerate(segments):
        lines = {(stream, seq) for stream in range(2) for seq in members(held[stream])}
        skipped = {
            (position, seq)
            for position, first, end in skips.get(number, [])
            for seq in range(first, end)
        }
        assert skipped == lines & seen
        seen |= lines


def test_without_overlap_there_is_nothing_to_skip() -> None:
    tables = {0: [entry(STREAMS[0], [(0, 5)])], 1: [entry(STREAMS[0], [(5, 9)])]}
    assert skipped_ranges(tables) == {}


@given(RANGES, RANGES)
def test_ranges_are_sets(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> None:
    assert members(union([*a, *b])) == members(a) | members(b)
    assert members(intersection(a, b)) == members(a) & members(b)
    assert members(difference(a, b)) == members(a) - members(b)
