"""Row groups of points that rows lie in, against one look at each row."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ranklog.layout.index import SegmentIndex, encode_index
from ranklog.layout.point_index import SeriesTable
from ranklog.model.index import IndexHead, RowGroup, SegmentRef
from ranklog.plan.point_prune import SegmentPoints

RECORDS = 3


def facts(sizes: list[int]) -> SegmentPoints:
    """A segment with a row group of records, then groups of so many points, in one series."""
    groups, first = [], 0
    for size in (RECORDS, *sizes):
        groups.append(RowGroup(first, size, {}, {}, frozenset(), None, False, (0, 0)))
        first += size
    ref = SegmentRef("k", 1, "ab" * 16, "")
    rows = sum(sizes)
    head = IndexHead(5, "point", ref, rows, 0, 0, 0, (), tuple(groups), ())
    table = SeriesTable(("loss",), ("{}",), (), (0,), (0,), (rows,), RECORDS)
    return SegmentPoints(SegmentIndex.open(encode_index(head, series=table), "k"), ())


@given(st.data())
def test_row_groups_of_rows_are_those_with_one_of_them(draw: st.DataObject) -> None:
    sizes = draw.draw(st.lists(st.integers(1, 5), min_size=1, max_size=6))
    end = RECORDS + sum(sizes)
    cuts = sorted(draw.draw(st.sets(st.integers(RECORDS, end), max_size=8)))
    rows = tuple(zip(cuts[::2], cuts[1::2], strict=False))
    segment = facts(sizes)
    wanted = [
        i
        for i in segment.point_groups
        if any(
            start < group.first_row + group.rows and group.first_row < stop
            for group in [segment.index.head.row_groups[i]]
            for start, stop in rows
        )
    ]
    assert segment.groups_of(rows) == wanted
