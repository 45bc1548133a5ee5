"""Frames over a tenant's quota wait in the store: nothing is lost, nobody else waits, and it is said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ranklog.access.meter import PARKED, STREAMED, Meter, read_hour
from ranklog.access.policy import Policy, Quotas, write_policy
from ranklog.client import Client
from ranklog.errors import NotFound, Unavailable
from ranklog.ingest.allowance import Allowance
from ranklog.ingest.batch import IngestReport, ingest_batch
from ranklog.ingest.quarantine import keep, list_entries, mark_replayed
from ranklog.ingest.waiting import list_waiting, release
from ranklog.limits import HOUR_NS, SECOND_NS
from ranklog.model.record import Record
from ranklog.store.memory import MemoryStore
from ranklog.stream.frames import encode_frame
from tests.ingest.frames import STREAM, T0, Row, make_frame, stream

OTHER = stream(tenant="other")


class Clocks:
    """Of the hour that T0 begins; both move together."""

    def __init__(self) -> None:
        self.at_s = 1.0

    def wall_ns(self) -> int:
        return T0 + int(self.at_s * SECOND_NS)


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


def limited(store: MemoryStore, clocks: Clocks, process: str = "a") -> Allowance:
    meter = Meter(
        store, clock_ns=clocks.wall_ns, clock_s=lambda: clocks.at_s, process=process, resume=True
    )
    return Allowance(meter)


def frame(seq: int, tenant: str = "acme", run: str = "llama") -> bytes:
    one = replace(OTHER if tenant == "other" else STREAM, run=run)
    rows = [Row(f"{tenant} line {seq}", stream=one)]
    return encode_frame(make_frame(rows, first_seq={one: seq}, number=seq, tenant=tenant))


def ingest(
    store: MemoryStore, allowance: Allowance | None, *frames: bytes, first: int = 0
) -> IngestReport:
    records = [Record(data, T0 + first + i, f"{first + i:04d}") for i, data in enumerate(frames)]
    names: dict[str, Any] = {"first": records[0].sequence, "last": records[-1].sequence}
    return ingest_batch(records, store=store, allowance=allowance, source="s", **names)


def texts(store: MemoryStore, tenant: str = "acme") -> list[str]:
    return [
        line.text
        for line in Client(store=store, tenant=tenant)
        .search("line", limit=None, order="oldest", since="2026-02-28")
        .lines
    ]


def allow(store: MemoryStore, frames: float) -> None:
    quota = Quotas(ingest_bytes_per_hour=int(frames * len(frame(0))))
    write_policy(store, "acme", Policy(quotas=quota))


def test_what_is_over_the_quota_waits_and_others_do_not(clocks: Clocks) -> None:
    store = MemoryStore()
    allow(store, 2)
    report = ingest(store, limited(store, clocks), *map(frame, range(4)), frame(0, "other"))
    assert (report.lines, report.parked, report.bad) == (3, ["acme", "acme"], [])
    assert texts(store) == ["acme line 0", "acme line 1"]
    assert texts(store, "other") == ["other line 0"]
    assert [item.sequence for item in list_waiting(store, "acme")] == ["0002", "0003"]
    assert list(list_waiting(store, "other")) == []


def test_in_the_next_hour_it_is_stored_in_order_as_far_as_there_is_room(clocks: Clocks) -> None:
    store = MemoryStore()
    allow(store, 2)
    allowance = limited(store, clocks)
    ingest(store, allowance, *map(frame, range(5)))
    none = release(store, "acme", allowance=allowance, rules=None)
    assert (none.frames, none.left) == (0, 3)
    clocks.at_s += 3_600
    some = release(store, "acme", allowance=allowance, rules=None)
    assert (some.frames, some.lines, some.left) == (2, 2, 1)
    assert texts(store) == [f"acme line {seq}" for seq in range(4)]
    allow(store, 100)
    clocks.at_s += 3_600
    assert release(store, "acme", allowance=allowance, rules=None).left == 0
    assert texts(store) == [f"acme line {seq}" for seq in range(5)]
    allowance.meter.flush()
    hours = [T0 // HOUR_NS + i for i in range(3)]
    counted = [read_hour(store, "acme", hour) for hour in hours]
    assert [counts[PARKED] for counts in counted] == [3, 0, 0]
    sizes = [len(frame(seq)) for seq in range(5)]
    assert [c[STREAMED] for c in counted] == [sum(sizes[:2]), sum(sizes[2:4]), sizes[4]]


def test_while_frames_wait_no_answer_is_complete(clocks: Clocks) -> None:
    store = MemoryStore()
    allow(store, 1)
    ingest(store, limited(store, clocks), frame(0), frame(1))
    write_policy(store, "acme", Policy())
    ingest(store, None, frame(2), first=9)
    answer = Client(store=store, tenant="acme").search("line", since="2026-02-28")
    assert answer.completeness.state == "gaps"
    assert answer.completeness.waiting == [{"reason": "over_quota", "frames": 1}]
    release(store, "acme", allowance=None, rules=None)
    answer = Client(store=store, tenant="acme").search("line", since="2026-02-28")
    assert (answer.completeness.gaps, answer.completeness.waiting) == ([], [])


def test_a_run_of_which_all_frames_wait_is_said_to_wait(clocks: Clocks) -> None:
    store = MemoryStore()
    allow(store, 1)
    ingest(store, limited(store, clocks), frame(0))
    ingest(store, limited(store, clocks), frame(0, run="later"), first=9)
    client = Client(store=store, tenant="acme")
    with pytest.raises(NotFound) as raised:
        client.search("", run="later")
    assert "no run named later" in raised.value.message
    assert raised.value.hint == (
        "frames wait (1 for the tenant's quota), its lines may be in them: ranklog quarantine list; "
        "did you mean llama?"
    )
    since = {"since": "2026-02-28"}
    told = [client.search("", **since).completeness, client.runs().completeness]
    assert [(one.state, one.waiting[0]["frames"]) for one in told] == [("behind", 1)] * 2


def test_a_run_of_which_all_frames_are_in_quarantine_is_said_to_be_there() -> None:
    store = MemoryStore()
    for name in ("1", "2"):
        keep(store, Record(frame(0), T0, name), "failed", "it broke", "k")
    [one, other] = list_entries(store, "acme")
    mark_replayed(store, other, T0)
    with pytest.raises(NotFound) as raised:
        Client(store=store, tenant="acme").search("", run="llama")
    assert str(raised.value.hint).startswith("frames wait (1 in quarantine), ")
    mark_replayed(store, one, T0)
    with pytest.raises(NotFound) as raised:
        Client(store=store, tenant="acme").search("", run="llama")
    assert raised.value.hint == "this tenant has no runs"


def test_a_batch_that_failed_and_comes_again_is_stored_once_and_counted_once(
    clocks: Clocks,
) -> None:
    class Failing(MemoryStore):
        fails = True

        def put(self, key: str, data: bytes, *, if_absent: bool = False) -> str:
            if self.fails and "/index/" in key:
                raise Unavailable("away")
            return super().put(key, data, if_absent=if_absent)

    store = Failing()
    allow(store, 2)
    allowance = limited(store, clocks)
    with pytest.raises(Unavailable):
        ingest(store, allowance, *map(frame, range(3)))
    store.fails = False
    ingest(store, allowance, *map(frame, range(3)))
    assert texts(store) == ["acme line 0", "acme line 1"]
    assert allowance.meter.used("acme", STREAMED) == len(frame(0)) + len(frame(1))
    assert len(list(list_waiting(store, "acme"))) == 1


class Stopping(MemoryStore):
    """Deletes nothing while it `stops`."""

    stops = False

    def delete(self, key: str) -> None:
        if self.stops:
            raise Unavailable("away")
        super().delete(key)


def test_a_release_that_is_cut_short_stores_nothing_twice(clocks: Clocks) -> None:
    store = Stopping()
    allow(store, 1)
    ingest(store, limited(store, clocks), *map(frame, range(3)))
    store.stops = True
    with pytest.raises(Unavailable):
        release(store, "acme", allowance=None, rules=None)
    store.stops = False
    assert release(store, "acme", allowance=None, rules=None).left == 0
    assert texts(store) == [f"acme line {seq}" for seq in range(3)]


def test_a_frame_that_came_between_two_releases_is_stored_by_the_second(clocks: Clocks) -> None:
    store = Stopping()
    allow(store, 1)
    frames = list(map(frame, range(5)))
    ingest(store, limited(store, clocks), *frames[:2])
    ingest(store, limited(store, clocks), frames[4], first=4)
    store.stops = True
    with pytest.raises(Unavailable):
        release(store, "acme", allowance=None, rules=None)  # committed, and its copies stay
    report = ingest(store, limited(store, clocks), *frames[2:4], first=2)  # of another shard
    assert report.parked == ["acme"] * 2
    store.stops = False
    assert release(store, "acme", allowance=None, rules=None).left == 0
    assert texts(store) == [f"acme line {seq}" for seq in range(5)]


def test_a_quota_holds_for_all_processes_and_for_one_that_begins_again(clocks: Clocks) -> None:
    store = MemoryStore()
    allow(store, 2)
    first = limited(store, clocks)
    ingest(store, first, frame(0), frame(1))
    first.meter.flush()
    again = limited(store, clocks)  # of the same name
    assert ingest(store, again, frame(2), first=2).parked == ["acme"]
    assert ingest(store, limited(store, clocks, "b"), frame(3), first=3).parked == ["acme"]
