"""Many tombstones become few that say the same, wherever it is cut short and whoever reads meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranklog.delete import merging
from ranklog.delete.merging import merge_tombstones, merged
from ranklog.delete.tombstones import TombstoneCache, fold, load, put_tombstone
from ranklog.limits import REMOVAL_GRACE_S, SECOND_NS
from ranklog.model.tombstone import LAUNCH, LINES, RETENTION, Deleted, Tombstone, Tombstones
from ranklog.plan.overlap import union
from ranklog.store.memory import MemoryStore
from ranklog.store.protocol import ObjectInfo

NOW = 10_000 * SECOND_NS + REMOVAL_GRACE_S * SECOND_NS


@st.composite
def tombstones(draw: st.DrawFn) -> list[Tombstone]:
    found = []
    for at in range(draw(st.integers(2, 9))):
        kind = draw(st.sampled_from([LINES, LAUNCH, RETENTION]))
        rows = []
        for _ in range(draw(st.integers(0, 3))):
            pairs = draw(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), max_size=3))
            ranges = tuple(union([(first, first + size) for first, size in pairs]))
            if ranges:
                lines = sum(end - first for first, end in ranges)
                names = (draw(st.sampled_from(["aa", "bb"])), "run", "1", 0, 3)
                rows.append(
                    Deleted(*names, draw(st.sampled_from([None, 7, 8])), lines, ranges, kind)
                )
        launches = (("gone", str(at)),) if kind == LAUNCH else ()
        frames = (("0a", at, at + 2),) if kind == RETENTION else ()
        found.append(Tombstone(kind, at * SECOND_NS, "ada", "", "q", launches, tuple(rows), frames))
    return found


def says(found: Tombstones) -> tuple[object, ...]:
    """What readers make of them. How many lines of an hour depends on which was counted first where two
    name a row, so lines are counted by stream."""
    lines: Counter[str] = Counter()
    for row in found.rows:
        lines[row.stream_id] += row.lines
    numbers: dict[str, list[tuple[int, int]]] = {}
    for agent, first, end in found.frames:
        numbers.setdefault(agent, []).append((first, end))
    return (
        dict(found.streams),
        found.launches,
        +lines,
        {agent: union(ranges) for agent, ranges in numbers.items()},
    )


def put_all(store: MemoryStore, found: list[Tombstone]) -> None:
    for one in found:
        put_tombstone(store, "acme", one)


def names(store: MemoryStore) -> list[str]:
    return [info.key for info in store.list("acme/tombstones/")]


@given(tombstones())
@settings(deadline=None)
def test_the_merged_one_says_what_all_of_them_say_beside_them_too(found: list[Tombstone]) -> None:
    each = {f"{at:03d}": one for at, one in enumerate(found)}
    one = merged(found)
    assert says(fold({"z": one})) == says(fold(each))
    assert says(fold({**each, "zz": one})) == says(fold(each))


@given(tombstones(), st.integers(0, 12))
@settings(deadline=None)
def test_cut_short_at_any_step_nothing_that_was_deleted_shows(
    found: list[Tombstone], stop: int
) -> None:
    class Stopping(MemoryStore):
        steps = stop

        def put(self, key: str, data: bytes, *, if_absent: bool = False) -> str:
            self._step()
            return super().put(key, data, if_absent=if_absent)

        def delete(self, key: str) -> None:
            self._step()
            super().delete(key)

        def _step(self) -> None:
            self.steps -= 1
            if self.steps < 0:
                raise KeyboardInterrupt

    store = Stopping()
    store.steps = 1_000
    put_all(store, found)
    store.steps = stop
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging, "TOMBSTONES_MAX", 1)
        try:
            merge_tombstones(store, "acme", NOW)
        except KeyboardInterrupt:
            assert says(load(store, "acme")) == says(fold(_keyed(found)))
        store.steps = 1_000
        merge_tombstones(store, "acme", NOW)
        assert says(load(store, "acme")) == says(fold(_keyed(found)))
        assert len(names(store)) <= 2


def _keyed(found: list[Tombstone]) -> dict[str, Tombstone]:
    return {f"{at:03d}": one for at, one in enumerate(found)}


def some(count: int) -> list[Tombstone]:
    rows = [
        Deleted("aa", "run", "1", 0, 3, at, 1, ((at, at + 1),), RETENTION) for at in range(count)
    ]
    return [
        Tombstone(RETENTION, at * SECOND_NS, "t", "", "", (), (row,)) for at, row in enumerate(rows)
    ]


def test_their_number_has_a_bound_and_what_is_younger_than_the_grace_stays() -> None:
    store = MemoryStore()
    put_all(store, some(merging.TOMBSTONES_MAX))
    assert merge_tombstones(store, "acme", NOW) == 0
    young = Tombstone(RETENTION, NOW - SECOND_NS, "t", "", "", (), some(99)[98].rows)
    put_all(store, [*some(merging.TOMBSTONES_MAX + 1), young])
    assert merge_tombstones(store, "acme", NOW) == merging.TOMBSTONES_MAX + 1
    assert len(names(store)) == 2
    assert load(store, "acme").streams == {"aa": ((0, 65), (98, 99))}
    # what goes by their time is not let go of sooner than before
    before = TombstoneCache(store, "acme").before(merging.TOMBSTONES_MAX * SECOND_NS)
    assert not before


def test_a_large_one_is_left_alone_and_bytes_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    put_all(store, some(80))
    size = max(info.length for info in store.list("acme/tombstones/"))
    monkeypatch.setattr(merging, "TOMBSTONE_BYTES_MAX", 10 * size)
    merge_tombstones(store, "acme", NOW)
    assert 8 <= len(names(store)) <= 12
    assert load(store, "acme").streams == {"aa": ((0, 80),)}


def test_a_reader_that_listed_what_went_lists_again() -> None:
    class Merging(MemoryStore):
        """Merges between a reader's list and its first read."""

        merges = False

        def list(self, prefix: str, *, start_after: str = "") -> Iterator[ObjectInfo]:
            found = [*super().list(prefix, start_after=start_after)]
            if self.merges:
                self.merges = False
                merge_tombstones(self, "acme", NOW)
            return iter(found)

    store = Merging()
    put_all(store, some(70))
    store.merges = True
    assert load(store, "acme").streams == {"aa": ((0, 70),)}
    assert len(names(store)) == 1
