"""Bytes of tombstones: golden, round trips, damage."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranklog.delete.codec import decode_tombstone, encode_tombstone, ranges_of, steps_of
from ranklog.delete.tombstones import fold, load, put_tombstone
from ranklog.errors import Corrupt, NewerVersion
from ranklog.model.tombstone import EVERY_ROW, LINES, Deleted, Tombstone
from ranklog.plan.overlap import union
from ranklog.store.memory import MemoryStore

ROWS = Deleted("ab" * 16, "llama", "17", 0, 3, 492_312, 4, ((0, 3), (7, 8)))
TOMBSTONE = Tombstone(LINES, 5, "ada", "asked", "secret", (), (ROWS,), (("0a", 2, 5),))
GOLDEN = (
    b'{"frames":[["0a",2,5]],"kind":"lines","launches":[],"query":"secret","rows":[["abababababababababababababababab",'
    b'"llama","17",0,3,492312,4,[0,3,4,1]]],"version":1,"when_ns":5,"who":"ada","why":"asked"}'
)


def test_the_bytes_of_version_1_stay() -> None:
    assert encode_tombstone(TOMBSTONE) == GOLDEN
    assert decode_tombstone(GOLDEN, "k") == TOMBSTONE


@given(st.lists(st.tuples(st.integers(0, 2**40), st.integers(1, 99))))
def test_steps_hold_any_ranges(found: list[tuple[int, int]]) -> None:
    ranges = tuple(union([(first, first + size) for first, size in found]))
    assert ranges_of(steps_of(ranges)) == ranges


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"{}", GOLDEN[:-9], GOLDEN.replace(b"[0,3,4,1]", b"[0,3,4]")]
    + [GOLDEN.replace(b"[0,3,4,1]", bad) for bad in (b"[0,0]", b"[-1,3]", b'["a",1]')],
)
def test_damage_is_an_error_and_never_fewer_deletions(data: bytes) -> None:
    with pytest.raises(Corrupt):
        decode_tombstone(data, "k")


def test_a_newer_version_is_named() -> None:
    with pytest.raises(NewerVersion, match="version 2"):
        decode_tombstone(GOLDEN.replace(b'"version":1', b'"version":2'), "k")


def test_a_row_that_is_deleted_twice_counts_once() -> None:
    again = Tombstone(LINES, 6, "bob", "", "*", (), (Deleted(*_names(), 5, ((2, 5), (7, 9))),))
    folded = fold({"a": TOMBSTONE, "b": again})
    assert folded.streams == {ROWS.stream_id: ((0, 5), (7, 9))}
    assert sum(item.lines for item in folded.rows) == 4 + 5 - 2


def _names() -> tuple[str, str, str, int, int | None, int | None]:
    return ROWS.stream_id, ROWS.run, ROWS.launch, ROWS.attempt, ROWS.rank, ROWS.hour


def test_a_store_gives_back_what_was_put_and_the_same_twice_is_one() -> None:
    store = MemoryStore()
    assert not load(store, "acme")
    key = put_tombstone(store, "acme", TOMBSTONE)
    assert put_tombstone(store, "acme", TOMBSTONE) == key
    assert load(store, "acme").keys == (key,)
    assert not load(store, "other")


def test_a_launch_that_is_deleted_hides_every_seq() -> None:
    from ranklog.model.index import StreamEntry
    from tests.ingest.frames import STREAM

    entry = StreamEntry(STREAM, "cd" * 16, 1, 1, 0, 0, ((5, 6),))
    whole = fold({"a": Tombstone("launch", 1, "", "", "", (("llama", "17"),))})
    assert whole.hidden(entry) == list(EVERY_ROW)
    assert fold({"a": TOMBSTONE}).hidden(entry) == []
