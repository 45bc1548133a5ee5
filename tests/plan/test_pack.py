"""Tasks are worth a call and no longer than a few rounds of GETs."""

from __future__ import annotations

from ranklog import limits
from ranklog.plan.pack import pack
from ranklog.plan.tasks import SegmentScan


def scans(count: int, size: int) -> list[SegmentScan]:
    return [
        SegmentScan(i, f"k{i}", 10**9, "", 0, min_ts=i, max_ts=i + 5, small=((0, size),))
        for i in range(count)
    ]


def test_segments_of_few_bytes_are_read_by_several_tasks() -> None:
    packed = pack(scans(16, 1_000), concurrency=64)
    assert [len(task) for task in packed] == [4, 4, 4, 4]


def test_large_segments_have_tasks_of_their_own() -> None:
    assert [len(task) for task in pack(scans(3, limits.MIB), concurrency=64)] == [1, 1, 1]


def test_few_tasks_where_few_can_run() -> None:
    assert [len(task) for task in pack(scans(16, 1_000), concurrency=2)] == [8, 8]


def test_tasks_come_in_the_order_of_time_that_is_asked_for() -> None:
    for newest, expected in ((True, [3, 2, 1, 0]), (False, [0, 1, 2, 3])):
        packed = pack(scans(4, limits.MIB), concurrency=64, newest=newest)
        assert [task[0].number for task in packed] == expected
