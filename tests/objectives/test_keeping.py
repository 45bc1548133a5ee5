"""Measures in a store: what processes wrote adds up, before, during and after rolling up."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranklog.errors import Corrupt, NewerVersion
from ranklog.layout import keys
from ranklog.limits import HOUR_NS, MEASURES_KEPT_NS, MEASURES_LAG_NS
from ranklog.objectives import names
from ranklog.objectives.keeping import MINUTE_NS, Part, put_part, read_measures, roll_up
from ranklog.objectives.measures import Measures, merged
from ranklog.store import MemoryStore

HOUR = 500_000
BEGIN_NS = HOUR * HOUR_NS


def lines(count: int, ms: float = 100.0) -> Measures:
    made = Measures()
    made.count(names.LINES, count)
    made.took(names.FRESHNESS, ms, count)
    return made


def total(store: MemoryStore, hours: int = 4) -> Measures:
    return read_measures(store, "t", BEGIN_NS, BEGIN_NS + hours * HOUR_NS)[0]


PARTS = st.lists(
    st.tuples(
        st.integers(0, 3),  # hour
        st.integers(0, 59),
        st.sampled_from("abc"),  # process
        st.integers(1, 9),
        st.floats(0, 1e5),
    ),
    max_size=12,
)


class Interrupted(Exception):
    pass


class BreaksAfter(MemoryStore):
    """Raises at PUT or DELETE number `left`."""

    left = 10**6

    def _spend(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Interrupted

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> str:
        self._spend()
        return super().put(key, data, if_absent=if_absent)

    def delete(self, key: str) -> None:
        self._spend()
        super().delete(key)


@settings(deadline=None)
@given(PARTS, st.integers(0, 12), st.integers(0, 4))
def test_rolling_up_changes_no_sum_wherever_it_is_cut_short(
    parts: list[tuple[int, int, str, int, float]], steps: int, hours_later: int
) -> None:
    store = BreaksAfter()
    kept: dict[tuple[int, str], Part] = {}
    for hour, minute, process, count, ms in parts:
        part = kept.setdefault((hour, process), Part())
        part.minutes.setdefault(minute, Measures()).merge(lines(count, ms))
    for (hour, process), part in kept.items():
        put_part(store, "t", HOUR + hour, process, part)
    expected = merged(lines(count, ms) for _, _, _, count, ms in parts)
    assert total(store) == expected
    now_ns = BEGIN_NS + hours_later * HOUR_NS + MEASURES_LAG_NS
    store.left = steps
    try:
        roll_up(store, "t", now_ns)
    except Interrupted:
        assert total(store) == expected
    store.left = 10**6
    roll_up(store, "t", now_ns)
    assert total(store) == expected
    for hour in range(hours_later):
        names_of = [item.key for item in store.list(keys.measures_hour_prefix("t", HOUR + hour))]
        assert names_of in ([], [keys.measures_key("t", HOUR + hour, "rolled")])
    assert roll_up(store, "t", now_ns) == 0


def test_only_the_minutes_that_are_asked_for_are_told_of_an_hour_that_runs() -> None:
    store = MemoryStore()
    put_part(store, "t", HOUR, "a", Part({3: lines(1), 7: lines(10), 9: lines(100)}))
    found, begins_ns = read_measures(
        store, "t", BEGIN_NS + 7 * MINUTE_NS + 5, BEGIN_NS + 9 * MINUTE_NS
    )
    assert found == lines(10)
    assert begins_ns == BEGIN_NS + 7 * MINUTE_NS


def test_a_rolled_hour_is_told_whole_and_said_to_be() -> None:
    store = MemoryStore()
    put_part(store, "t", HOUR, "a", Part({3: lines(1), 7: lines(10)}))
    roll_up(store, "t", BEGIN_NS + 2 * HOUR_NS)
    found, begins_ns = read_measures(
        store, "t", BEGIN_NS + 30 * MINUTE_NS, BEGIN_NS + HOUR_NS + MINUTE_NS
    )
    assert found == lines(11)
    assert begins_ns == BEGIN_NS


def test_what_a_sleeper_writes_under_a_name_that_is_rolled_up_counts_once() -> None:
    store = MemoryStore()
    put_part(store, "t", HOUR, "a", Part({3: lines(5)}))
    roll_up(store, "t", BEGIN_NS + 2 * HOUR_NS)
    put_part(store, "t", HOUR, "a", Part({3: lines(5), 4: lines(1)}))
    assert total(store) == lines(5)
    assert roll_up(store, "t", BEGIN_NS + 2 * HOUR_NS) == 1
    assert total(store) == lines(5)


def test_an_hour_that_runs_is_left_as_it_is() -> None:
    store = MemoryStore()
    put_part(store, "t", HOUR, "a", Part({3: lines(5)}))
    assert roll_up(store, "t", BEGIN_NS + HOUR_NS + MEASURES_LAG_NS - 1) == 0
    assert roll_up(store, "t", BEGIN_NS + HOUR_NS + MEASURES_LAG_NS) == 1


def test_measures_are_deleted_when_they_are_too_old() -> None:
    store = MemoryStore()
    put_part(store, "t", HOUR, "a", Part({3: lines(5)}))
    later = BEGIN_NS + MEASURES_KEPT_NS
    roll_up(store, "t", later)
    assert list(store.list("")) != []
    roll_up(store, "t", later + HOUR_NS)
    assert list(store.list("")) == []


def test_tenants_do_not_see_each_other() -> None:
    store = MemoryStore()
    put_part(store, "t", HOUR, "a", Part({3: lines(5)}))
    put_part(store, "t/../u", HOUR, "a", Part({3: lines(7)}))
    assert total(store) == lines(5)


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"version":1,"minutes":{"x":{}}}', b"\xff"])
def test_damaged_measures_are_named(data: bytes) -> None:
    store = MemoryStore()
    store.put(keys.measures_key("t", HOUR, "a"), data)
    with pytest.raises(Corrupt, match="measures/"):
        total(store)


def test_measures_of_a_newer_version_are_not_guessed_at() -> None:
    store = MemoryStore()
    store.put(keys.measures_key("t", HOUR, "a"), b'{"version":2}')
    with pytest.raises(NewerVersion):
        total(store)


def test_a_part_comes_back_from_its_bytes() -> None:
    part = Part({3: lines(5, 77.0), 4: lines(1)}, ("a", "b"))
    assert Part.decode(part.encode(), "key") == part
    assert part.minutes[3].times(names.FRESHNESS).quantile(Fraction(1, 2)) == pytest.approx(
        77, rel=1 / 11
    )
