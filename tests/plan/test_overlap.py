"""Whatever overlaps, each line is answered by exactly one segment: that with the smallest frame hash, of
equal ones the first."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ranklog.layout.claims import Claim, layers
from ranklog.model.index import StreamEntry
from ranklog.model.stream import Stream
from ranklog.plan.overlap import Overlaps, difference, intersection, overlaps, union

STREAMS = [Stream("t", "r", "l", 0, "h", rank, rank, "stdout", "i") for rank in range(2)]
RANGES = st.lists(
    st.tuples(st.integers(0, 12), st.integers(1, 6)).map(lambda r: (r[0], r[0] + r[1])), max_size=4
).map(union)


def entry(stream: Stream, ranges: list[tuple[int, int]]) -> StreamEntry:
    lines = sum(end - first for first, end in ranges)
    return StreamEntry(stream, stream.stream_id, lines, 0, 0, 0, tuple(ranges))


def members(ranges: list[tuple[int, int]]) -> set[int]:
    return {number for first, end in ranges for number in range(first, end)}


def overlaps_of(tables: dict[int, list[StreamEntry]], frames: dict[int, str]) -> Overlaps:
    """As if each segment had the rows of one frame."""

    def claims(number: int, entry: StreamEntry) -> list[Claim]:
        frame = frames.get(number, "")
        return [Claim(first, end, frame, frame) for first, end in entry.ranges]

    return overlaps(tables, claims)


@settings(deadline=None)
@given(
    st.lists(st.lists(RANGES, min_size=2, max_size=2), max_size=5),
    st.lists(st.sampled_from(["", "a", "b", "c"]), min_size=5, max_size=5),
)
def test_the_segment_of_the_smallest_hash_answers_for_a_line_then_the_first(
    segments: list[list[list[tuple[int, int]]]], hashes: list[str]
) -> None:
    tables = {
        number: [entry(stream, ranges) for stream, ranges in zip(STREAMS, held, strict=True)]
        for number, held in enumerate(segments)
    }
    found = overlaps_of(tables, dict(enumerate(hashes)))
    lines = {
        number: {(stream, seq) for stream in range(2) for seq in members(held[stream])}
        for number, held in enumerate(segments)
    }
    for number in lines:
        skipped = {
            (position, seq)
            for position, first, end in found.skips.get(number, [])
            for seq in range(first, end)
        }
        assert skipped == {
            line
            for line in lines[number]
            if any(
                (hashes[other], other) < (hashes[number], number)
                for other in lines
                if line in lines[other]
            )
        }
    for position, stream in enumerate(STREAMS):
        assert members(found.contested.get(stream.stream_id, [])) == {
            seq
            for seq in range(20)
            if len({hashes[n] for n in lines if hashes[n] and (position, seq) in lines[n]}) > 1
        }


def test_without_overlap_there_is_nothing_to_skip() -> None:
    tables = {0: [entry(STREAMS[0], [(0, 5)])], 1: [entry(STREAMS[0], [(5, 9)])]}
    assert overlaps_of(tables, {}) == Overlaps()


@given(RANGES, RANGES)
def test_ranges_are_sets(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> None:
    assert members(union([*a, *b])) == members(a) | members(b)
    assert members(intersection(a, b)) == members(a) & members(b)
    assert members(difference(a, b)) == members(a) - members(b)


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 14)), max_size=6))
def test_layers_tell_at_every_number_what_lies_there(ranges: list[tuple[int, int]]) -> None:
    pieces = [(first, end, number) for number, (first, end) in enumerate(ranges)]
    found = {
        seq: sorted(there) for first, end, there in layers(pieces) for seq in range(first, end)
    }
    wanted = {
        seq: [number for first, end, number in pieces if first <= seq < end] for seq in range(14)
    }
    assert found == {seq: there for seq, there in wanted.items() if there}
