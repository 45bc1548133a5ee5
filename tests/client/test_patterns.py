"""Templates with counts and examples: from indexes where they suffice, the same as from a scan."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranklog.client import Client
from ranklog.errors import BadInput, NotFound
from ranklog.store.memory import MemoryStore
from tests.client.test_search import ended, put
from tests.ingest.frames import T0, Row, stream

SECOND = 1_000_000_000


def filled(rows: list[Row], *more: list[Row]) -> Client:
    store = MemoryStore()
    for name, some in enumerate([rows, *more]):
        put(store, str(name), some)
    return Client(store=store, tenant="acme")


STEPS = [Row(f"step {i}", ts=T0 + i * SECOND, stream=stream(i % 2), level=20) for i in range(6)]
ODD = Row("rank 3 is slow", ts=T0 + 9 * SECOND, stream=stream(1), level=30)


def test_templates_come_largest_first_with_their_first_line() -> None:
    listing = filled([*STEPS, ODD]).patterns(run="llama")
    assert listing.report.notes == ["from indexes alone"]
    steps, odd = listing.rows
    assert (steps["template"], steps["count"], steps["ranks"]) == ("step <*>", 6, [0, 1])
    assert (steps["first_ns"], steps["last_ns"]) == (T0, T0 + 5 * SECOND)
    assert (steps["example"]["text"], steps["new"]) == ("step 0", None)
    assert (odd["template"], odd["example"]["text"]) == ("rank <*> is slow", "rank 3 is slow")


def test_lines_with_ranks_of_their_own_have_their_first_line_too() -> None:
    rows = [Row(f"step {i}", ts=T0 + (9 - i) // 2 * SECOND, rank=i % 5) for i in range(10)]
    [row] = filled(rows).patterns(run="llama").rows
    assert (row["count"], row["ranks"], row["first_ns"]) == (10, [0, 1, 2, 3, 4], T0)
    assert row["example"]["text"] in ("step 8", "step 9")


def test_a_query_restricts_what_is_counted_and_shown() -> None:
    client = filled([*STEPS, ODD])
    [row] = client.patterns("step rank:1", run="llama").rows
    assert (row["count"], row["ranks"], row["example"]["text"]) == (3, [1], "step 1")
    [row] = client.patterns(level="WARNING", run="llama").rows
    assert row["template"] == "rank <*> is slow"
    [row] = client.patterns("step", since="2026-03-01T00:00:04", run="llama").rows
    assert (row["count"], row["example"]["text"]) == (2, "step 4")
    assert client.patterns("absent", run="llama").rows == []


def test_console_copies_and_lines_stored_twice_do_not_count() -> None:
    copy = replace(stream(None), channel="console", copy=True)
    client = filled(STEPS, STEPS[:4], [Row("step 0", stream=copy)])
    [row] = client.patterns(run="llama").rows
    assert row["count"] == 6


def test_what_an_earlier_run_never_said_is_new() -> None:
    later = [replace(row, stream=replace(row.stream, launch="18")) for row in [*STEPS, ODD]]
    later = [replace(row, ts=row.ts + 3600 * SECOND) for row in later]
    client = filled(STEPS, later)
    for words in ("~1", "llama@17", "llama~1"):
        rows = client.patterns(run="llama", with_=words).rows
        assert [(row["template"], row["new"]) for row in rows] == [
            ("step <*>", False),
            ("rank <*> is slow", True),
        ]
    with pytest.raises(BadInput, match="itself"):
        client.patterns(run="llama", with_="llama@18")
    with pytest.raises(BadInput, match="no launch 2 before"):
        client.patterns(run="llama", with_="~2")
    with pytest.raises(BadInput, match="which run"):
        client.patterns(with_="~1")
    with pytest.raises(NotFound):
        client.patterns(run="llama", with_="lama")


def test_new_is_not_known_where_the_earlier_run_can_not_be_read() -> None:
    store = MemoryStore()
    put(store, "1", STEPS, streams=[ended(stream(0), 3), ended(stream(1), 3)])
    later = replace(stream(1), launch="18")
    put(store, "2", [replace(ODD, stream=later, ts=ODD.ts + 3600 * SECOND)])
    client = Client(store=store, tenant="acme")
    [broken] = [item.key for item in store.list("acme/index/2026-03-01/00/")]
    store.put(broken, b"broken")
    [row] = client.patterns(run="llama@18", with_="llama@17").rows
    assert row["new"] is None


def test_a_limit_leaves_out_the_smallest_and_says_so() -> None:
    listing = filled([*STEPS, ODD]).patterns(run="llama", limit=1)
    assert [row["template"] for row in listing.rows] == ["step <*>"]
    assert listing.report.notes[1].startswith("1 more pattern")


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["a 1", "b 22", "a\x00", "c d"]), st.integers(0, 2)),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from(["", "rank:0", "a", "NOT b", "level>=WARNING"]),
)
def test_indexes_say_the_same_as_a_scan(lines: list[tuple[str, int]], query: str) -> None:
    rows = [
        Row(text, ts=T0 + i // 2, stream=stream(rank), level=20 + 10 * rank)
        for i, (text, rank) in enumerate(lines)
    ]
    client = filled(rows[: len(rows) // 2] or rows, rows)
    pruned = client.patterns(query, run="llama").rows
    scanned = client.patterns(query, run="llama", full_scan=True).rows
    for row in [*pruned, *scanned]:
        assert row["example"]["ts_ns"] == row["first_ns"]
        row["example"] = None  # of several lines at one time either may stand for all
    assert pruned == scanned
