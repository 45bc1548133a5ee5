"""Gaps where lines must be missing, doubt where they might, and never complete with a hole."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ranklog.answer.completeness import Window, judge
from ranklog.answer.deleted import Gone
from ranklog.limits import HOUR_NS
from ranklog.model.frame import Drop, Fence, StreamEnd
from ranklog.model.index import StreamEntry
from ranklog.model.stream import ARRIVAL, Stream
from ranklog.model.tombstone import LINES, RETENTION, Deleted, Tombstones

STREAM = Stream("acme", "llama", "17", 0, "gpu-1", 3, 3, "stdout", "0")
IMPORTED = replace(STREAM, certified="import")
RUN = Window()


def entry(
    *ranges: tuple[int, int],
    hour: int = 10,
    stream: Stream = STREAM,
    fences: tuple[Fence, ...] = (),
    end: int | None = None,
    drops: tuple[Drop, ...] = (),
    ts: tuple[int, int] | None = None,
) -> StreamEntry:
    low, high = ts or (hour * HOUR_NS, hour * HOUR_NS + 1000)
    return StreamEntry(
        stream=stream,
        stream_id=stream.stream_id,
        lines=sum(b - a for a, b in ranges),
        text_bytes=0,
        min_ts=low if ranges else None,
        max_ts=high if ranges else None,
        ranges=ranges,
        fences=fences,
        drops=drops,
        end=None if end is None else StreamEnd(end),
    )


def gaps(*entries: StreamEntry, window: Window = RUN) -> list[tuple[int, int]]:
    return [(gap["first_seq"], gap["last_seq"]) for gap in judge(entries, window).gaps]


def test_a_stream_that_ended_without_a_hole_is_complete() -> None:
    judged = judge([entry((0, 5)), entry((5, 9), end=9)], RUN)
    assert (judged.state, judged.certified, judged.streams) == ("complete", "producer", 1)
    assert judged.watermark_ns == 10 * HOUR_NS + 1000


def test_a_stream_that_did_not_end_is_behind() -> None:
    judged = judge([entry((0, 5))], RUN)
    assert judged.state == "behind"
    assert judged.behind == [
        {"stream": STREAM.stream_id, "rank": 3, "seq": 5, "ts_ns": 10 * HOUR_NS + 1000}
    ]


@pytest.mark.parametrize(
    ("entries", "missing"),
    [
        ([entry((0, 5), (7, 9), end=9)], [(5, 6)]),
        ([entry((2, 9), end=9)], [(0, 1)]),
        ([entry((0, 5), end=9)], [(5, 8)]),
        ([entry((0, 5), fences=(Fence(11, ((5, 8),)),))], [(5, 7)]),
        ([entry((0, 5)), entry((3, 9), end=9)], []),
        ([entry(end=0)], []),
        ([entry(end=4)], [(0, 3)]),
    ],
)
def test_of_a_whole_run_every_hole_is_a_gap(
    entries: list[StreamEntry], missing: list[tuple[int, int]]
) -> None:
    assert gaps(*entries) == missing


def test_an_arrival_stream_makes_no_gap_claims() -> None:
    arrival = replace(STREAM, kind=ARRIVAL, certified="none")
    judged = judge([entry((0, 5), (7, 9), end=9, stream=arrival)], RUN)
    assert (judged.gaps, judged.certified) == ([], "none")


def hours(low: int | None, high: int | None) -> Window:
    return Window(low, high, None if high is None else high * HOUR_NS)


def test_a_hole_between_two_hours_that_were_read_is_a_gap() -> None:
    parts = entry((0, 5), hour=10), entry((8, 9), hour=11)
    assert gaps(*parts, window=hours(10, 12)) == [(5, 7)]


def test_a_hole_that_may_lie_in_an_hour_that_was_not_read_is_doubt() -> None:
    judged = judge([entry((8, 9), hour=12, end=9)], hours(11, 13))
    assert (judged.gaps, judged.state) == ([], "behind")


def test_the_watermark_is_before_a_hole_that_may_lie_in_what_was_read() -> None:
    began, ended = 11 * HOUR_NS, 11 * HOUR_NS + 100
    judged = judge([entry((8, 9), ts=(began, ended))], hours(11, 13))
    assert (judged.gaps, judged.state, judged.watermark_ns) == ([], "behind", 0)
    known = entry((8, 9), ts=(began, ended), fences=(Fence(10, ((3, 8),)),))
    assert judge([known], hours(11, 13)).watermark_ns == ended


def test_fences_resolve_that_doubt() -> None:
    fences = Fence(11, ()), Fence(12, ((8, 9),))
    part = entry((8, 9), hour=12, end=9, fences=fences)
    assert judge([part], hours(11, 13)).state == "complete"


def test_a_fence_of_an_hour_that_was_not_read_bounds_a_hole_to_those_that_were() -> None:
    part = entry((0, 5), hour=10, fences=(Fence(12, ((8, 9),)),))
    assert gaps(part, window=hours(10, 12)) == [(5, 7)]


def test_with_an_open_beginning_what_comes_before_the_first_line_is_a_gap() -> None:
    assert gaps(entry((3, 9), hour=10), window=hours(None, 11)) == [(0, 2)]


def test_hours_without_lines_between_two_that_have_some_are_no_doubt() -> None:
    parts = entry((0, 5), hour=10), entry((5, 9), hour=40, end=9)
    assert judge(parts, hours(10, 41)).state == "complete"


def test_what_a_fence_says_of_an_hour_and_nobody_has_is_a_gap() -> None:
    part = entry((0, 5), stream=IMPORTED, fences=(Fence(10, ((0, 4), (9, 12))),))
    assert gaps(part, window=hours(10, 11)) == [(9, 11)]


def test_the_time_of_an_import_may_run_back_so_a_hole_alone_is_none() -> None:
    part = entry((0, 5), (9, 12), stream=IMPORTED, fences=(Fence(10, ((0, 5), (9, 12))),))
    assert judge([part], hours(10, 11)).state == "complete"


def test_lines_before_the_first_seen_may_be_missing_unless_a_fence_says_no() -> None:
    open_ = entry((5, 9), hour=10, end=9)
    fenced = replace(open_, fences=(Fence(10, ((5, 9),)),))
    assert judge([open_], hours(10, 11)).state == "behind"
    assert judge([fenced], hours(10, 11)).state == "complete"


def test_a_line_after_the_bounds_proves_that_nothing_is_missing_before() -> None:
    seen = entry((0, 9), ts=(10 * HOUR_NS, 10 * HOUR_NS + 50))
    assert judge([seen], Window(10, 11, 10 * HOUR_NS + 20)).state == "complete"
    assert judge([seen], Window(10, 11, 10 * HOUR_NS + 80)).state == "behind"


def test_ranks_of_the_world_that_never_appeared_are_absent() -> None:
    world = replace(STREAM, world_size=5, rank=0)
    other = replace(STREAM, world_size=5, rank=4)
    judged = judge([entry((0, 1), end=1, stream=world), entry((0, 1), end=1, stream=other)], RUN)
    assert (judged.absent, judged.state) == ([1, 2, 3], "behind")


def test_a_rank_whose_lines_stand_in_a_console_file_is_not_absent() -> None:
    console = replace(IMPORTED, world_size=2, rank=None)
    labelled = replace(entry((0, 2), end=2, stream=console), ranks=((0, 1), (1, 1)))
    assert judge([labelled], RUN).state == "complete"


def test_drops_are_summed_by_reason_and_do_not_change_the_state() -> None:
    parts = [
        entry((0, 1), drops=(Drop(3, "quota"), Drop(1, "ring"))),
        entry((1, 2), drops=(Drop(4, "quota"),), end=2),
    ]
    judged = judge(parts, RUN)
    assert [(d["lines"], d["reason"]) for d in judged.dropped] == [(7, "quota"), (1, "ring")]
    assert judged.state == "complete"


def test_what_could_not_be_read_makes_it_partial_whatever_else_holds() -> None:
    skipped = [{"segment": "a.parquet", "reason": "missing"}]
    judged = judge([entry((0, 5), (7, 9))], RUN, skipped)
    assert (judged.state, judged.skipped_tasks) == ("partial", skipped)


def test_the_weakest_certificate_counts() -> None:
    parts = [entry((0, 1), end=1), entry((0, 1), end=1, stream=replace(IMPORTED, rank=1))]
    assert judge(parts, RUN).certified == "import"


def test_an_empty_fence_of_a_later_hour_proves_nothing_of_this_one() -> None:
    part = entry((0, 5), hour=10, fences=(Fence(12, ()),))
    assert judge([part], hours(10, 11)).state == "behind"


def test_a_rank_of_which_the_hours_that_were_read_say_nothing_is_absent() -> None:
    """It was silent, or what it said has not arrived: nobody can tell."""
    here = replace(STREAM, world_size=2, rank=0)
    other = replace(STREAM, world_size=2, rank=1)
    hour = Window(11, 12, 12 * HOUR_NS)
    said = entry((1, 2), hour=11, stream=here, fences=(Fence(11, ((1, 2),)), Fence(10, ((0, 1),))))
    assert (judge([said], hour).absent, judge([said], hour).state) == ([1], "behind")
    quiet = entry(stream=other, fences=(Fence(11, ()),))
    assert (judge([said, quiet], hour).absent, judge([said, quiet], hour).state) == ([], "complete")


def _gone(rank: int, hour: int | None, kind: str) -> Gone:
    """Two lines of a rank of that hour were removed."""
    name = replace(STREAM, rank=rank).stream_id
    row = Deleted(name, "llama", "17", 0, rank, hour, 2, ((0, 2),), kind)
    return Gone(Tombstones(("one",), {name: ((0, 2),)}, rows=(row,)))


@pytest.mark.parametrize(
    ("kind", "hour", "absent"),
    [
        *((LINES, 9, [1]), (LINES, 11, [1]), (LINES, None, [1])),
        *((RETENTION, 9, [1]), (RETENTION, 11, []), (RETENTION, None, [1])),
    ],
)
def test_a_rank_is_not_absent_where_retention_removed_the_hour(
    kind: str, hour: int | None, absent: list[int]
) -> None:
    """What somebody deleted leaves its notes: without these, other lines of the rank are missing. So they
    are where nobody knows of which hour the lines were that retention removed."""
    here = replace(STREAM, world_size=2, rank=0)
    said = entry((0, 1), hour=11, stream=here, fences=(Fence(11, ((0, 1),)),))
    judged = judge([said], Window(11, 12, 12 * HOUR_NS), gone=_gone(1, hour, kind))
    assert (judged.absent, judged.state) == (absent, "behind" if absent else "complete")


@pytest.mark.parametrize("window", [RUN, Window(11, None), Window(11, 13, 13 * HOUR_NS)])
def test_a_rank_is_absent_where_more_was_read_than_retention_removed(window: Window) -> None:
    """Its later lines may be on their way."""
    here = replace(STREAM, world_size=2, rank=0)
    said = entry((0, 1), hour=11, stream=here, end=1)
    judged = judge([said], window, gone=_gone(1, 11, RETENTION))
    assert (judged.absent, judged.state) == ([1], "behind")


def test_a_world_larger_than_any_claims_nothing() -> None:
    lying = replace(STREAM, world_size=2**62, rank=0)
    assert judge([entry((0, 1), end=1, stream=lying)], RUN).state == "complete"


def test_a_certificate_of_an_unknown_word_certifies_nothing() -> None:
    parts = [entry((0, 1), end=1, stream=replace(STREAM, certified="oath")), entry((0, 1), end=1)]
    assert judge(parts, RUN).certified == "none"
