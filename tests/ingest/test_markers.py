"""Hour markers: there before a reader can miss them, and put no more often than that takes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranklog.client.retention import _is_closed
from ranklog.delete.retention import Policy, Rule
from ranklog.errors import Unavailable
from ranklog.ingest.batch import ingest_batch
from ranklog.ingest.commit import Place
from ranklog.ingest.markers import Markers
from ranklog.layout import keys
from ranklog.limits import (
    DAY_NS,
    HOUR_NS,
    MARKERS_AGE_S_MAX,
    MARKERS_HOUR_AGE_NS_MAX,
    RETENTION_NS_MIN,
)
from ranklog.model.record import Record
from ranklog.model.tombstone import Tombstones
from ranklog.store.memory import MemoryStore
from ranklog.stream.frames import encode_frame
from tests.ingest.frames import T0, Row, make_frame

HOUR = T0 // HOUR_NS
LAUNCH = ("llama", "17")


class Recording(MemoryStore):
    """Keeps the keys of markers that are put, and refuses the next PUTs of which it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.markers: list[str] = []
        self.refused = 0

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> str:
        if "/hours/" in key:
            self.markers.append(key.rpartition("/")[2])
            if self.refused:
                self.refused -= 1
                raise Unavailable("no")
        return super().put(key, data, if_absent=if_absent)


class Clock:
    """Seconds since an hour's begin, as both clocks of `Markers`."""

    def __init__(self, seconds: float = 60.0) -> None:
        self.seconds = seconds

    def s(self) -> float:
        return self.seconds

    def ns(self) -> int:
        return T0 + int(self.seconds * 1e9)

    def markers(self, store: MemoryStore) -> Markers:
        return Markers(store, clock_s=self.s, clock_ns=self.ns)


def place(hour: int | None = HOUR, tenant: str = "acme") -> Place:
    return Place(tenant, hour, "2026-03-01", "s", "1", "1", HOUR)


def test_batches_of_an_hour_put_its_marker_once() -> None:
    store, clock = Recording(), Clock()
    markers = clock.markers(store)
    for number in range(3):
        frame = make_frame([Row(f"line {number}")], number=number)
        ingest_batch(
            [Record(encode_frame(frame), T0, "1")],
            store=store,
            markers=markers,
            source="s",
            first=str(number),
            last=str(number),
        )
    assert len(list(store.list("acme/index/"))) == 3
    assert store.markers == [keys.hour_text(HOUR)]


def test_each_hour_launch_and_tenant_has_its_own_marker() -> None:
    store, clock = Recording(), Clock()
    markers = clock.markers(store)
    for _ in range(2):
        markers.put(place(), [LAUNCH, ("llama", "18"), ("gpt", "17")])
        markers.put(place(HOUR + 1), [LAUNCH])
        markers.put(place(tenant="else"), [LAUNCH])
        markers.put(place(None), [LAUNCH])
    assert len(store.markers) == 6
    assert len([item for item in store.list("") if "/hours/" in item.key]) == 6


def test_a_marker_that_somebody_deleted_is_put_again_after_a_while() -> None:
    store, clock = Recording(), Clock()
    markers = clock.markers(store)
    markers.put(place(), [LAUNCH])
    store.delete(keys.hour_marker_key("acme", *LAUNCH, HOUR))
    clock.seconds += MARKERS_AGE_S_MAX - 1
    markers.put(place(), [LAUNCH])
    assert len(store.markers) == 1
    clock.seconds += 1
    markers.put(place(), [LAUNCH])
    assert [item.key for item in store.list("")] == [keys.hour_marker_key("acme", *LAUNCH, HOUR)]


def test_a_marker_that_the_store_did_not_take_is_put_again() -> None:
    store, clock = Recording(), Clock()
    markers, store.refused = clock.markers(store), 1
    with pytest.raises(Unavailable):
        markers.put(place(), [LAUNCH])
    markers.put(place(), [LAUNCH])
    markers.put(place(), [LAUNCH])
    assert len(store.markers) == 2 and len(list(store.list(""))) == 1


def test_a_marker_that_another_process_put_is_met_once() -> None:
    store, clock = Recording(), Clock()
    clock.markers(store).put(place(), [LAUNCH])
    other = clock.markers(store)
    other.put(place(), [LAUNCH])
    other.put(place(), [LAUNCH])
    assert len(store.markers) == 2


def test_a_process_forgets_markers_that_it_put_first_when_it_knows_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ranklog.ingest.markers.MARKERS_KNOWN_MAX", 4)
    store, clock = Recording(), Clock()
    markers = clock.markers(store)
    for launch in "abcde":
        markers.put(place(), [("llama", launch)])
    store.markers.clear()
    markers.put(place(), [("llama", launch) for launch in "cde"])
    assert store.markers == []
    markers.put(place(), [("llama", launch) for launch in "ab"])
    assert len(store.markers) == 2


@given(
    age_ns=st.integers(-HOUR_NS, 30 * DAY_NS),
    keep_ns=st.integers(RETENTION_NS_MIN, 400 * DAY_NS),
    later_ns=st.integers(-DAY_NS, DAY_NS),
)
def test_what_is_remembered_is_of_no_hour_whose_marker_retention_may_delete(
    age_ns: int, keep_ns: int, later_ns: int
) -> None:
    """Whatever rules held or will hold, and by a clock that is a day off."""
    now_ns = T0 + age_ns
    store = Recording()
    markers = Markers(store, clock_s=lambda: 0.0, clock_ns=lambda: now_ns)
    markers.put(place(), [LAUNCH])
    markers.put(place(), [LAUNCH])
    policy = Policy((Rule("*", keep_ns),))
    closed = _is_closed((*LAUNCH, HOUR), Tombstones(), policy, now_ns + later_ns)
    assert len(store.markers) == 2 or not closed
    assert len(store.markers) == (1 if age_ns - HOUR_NS < MARKERS_HOUR_AGE_NS_MAX else 2)
