"""Outcomes merge in any order to the same lines: each once, sorted, cut at the limit."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ranklog.merge.groups import FLOATS, GroupMerge, fill_buckets, sort_key
from ranklog.merge.lines import LineMerge, line_rank, typed_metadata
from ranklog.plan.tasks import Outcome

# stream tables of two segments: the same streams at other positions
TABLES = {0: ["a", "b", "c"], 1: ["c", "a", "b"]}
INDEXES: Any = {
    number: SimpleNamespace(
        head=SimpleNamespace(
            streams=[SimpleNamespace(stream_id=i, stream=SimpleNamespace(rank=ord(i))) for i in ids]
        ),
        templates=("", f"only of {number}"),
    )
    for number, ids in TABLES.items()
}
ROWS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 5), st.integers(0, 6)),
    max_size=30,
)


def outcome(rows: Any) -> Outcome:
    """Rows of (segment, stream position, seq, ts)."""
    names = ("segment", "stream", "seq", "ts")
    return Outcome(columns={name: [row[i] for row in rows] for i, name in enumerate(names)})


@given(ROWS, st.one_of(st.none(), st.integers(0, 8)), st.booleans(), st.integers(0, 99))
def test_tasks_merge_in_any_order(rows: Any, limit: int | None, newest: bool, seed: int) -> None:
    keys = sorted({(ts, TABLES[n][s], seq) for n, s, seq, ts in rows}, reverse=newest)
    random.Random(seed).shuffle(rows)
    merge = LineMerge(INDEXES, limit=limit, newest=newest)
    for at in range(0, len(rows), 3):
        merge.add(outcome(rows[at : at + 3]))
    assert merge.keys() == keys[:limit]
    assert merge.cut == (limit is not None and len(keys) > limit)


def test_groups_of_segments_are_added_by_what_their_positions_mean() -> None:
    merge = GroupMerge(INDEXES, ("rank",))
    columns = {"stream": [0, 1], "rank": [None, 5], "count": [2, 3]}
    merge.add(Outcome(columns={"segment": [0, 0], **columns}))
    merge.add(Outcome(columns={"segment": [1, 1], **columns}))
    assert {key: total.count for key, total in merge.groups.items()} == {
        (ord("a"),): 2,
        (ord("c"),): 2,
        (5,): 6,
    }


def test_a_rank_of_the_context_wins_and_minus_one_is_none() -> None:
    assert [line_rank(3, None), line_rank(3, 7), line_rank(3, -1)] == [3, 7, None]


def test_metadata_gets_its_values_back() -> None:
    found = typed_metadata({"int:n": 3, "float:x": "-Infinity", "str:s": "NaN", "float:y": 1})
    assert found == {"n": 3, "x": FLOATS["-Infinity"], "s": "NaN", "y": 1.0}


def test_empty_buckets_stand_between_full_ones() -> None:
    assert fill_buckets([30, 0], 10) == [0, 10, 20, 30]
    assert fill_buckets([], 10) == []


def test_absent_values_come_last() -> None:
    assert sorted([None, "b", 3, "a", 1.5], key=sort_key) == [1.5, 3, "a", "b", None]
