"""Rules of retention are read once a minute; what is below the floor is left out and counted."""

from __future__ import annotations

from ranklog import limits
from ranklog.client import Client
from ranklog.delete.retention import Policy, Rule, save_policy
from ranklog.ingest.batch import ingest_batch
from ranklog.ingest.floors import Policies
from ranklog.model.record import Record
from ranklog.store.memory import MemoryStore
from ranklog.stream.frames import encode_frame
from tests.client.test_series import put_points
from tests.ingest.frames import T0, Row, make_frame, stream
from tests.point_frames import Record as Point

DAY = limits.DAY_NS


def test_rules_hold_for_a_minute_and_are_then_read_again() -> None:
    store, now = MemoryStore(), [0.0]
    policies = Policies(store, clock_s=lambda: now[0])
    assert policies("acme") == Policy()
    save_policy(store, "acme", Policy((Rule("*", DAY),)))
    assert policies("acme") == Policy()
    now[0] = limits.RULES_AGE_S_MAX
    assert policies("acme") == Policy((Rule("*", DAY),))
    assert policies("other") == Policy()


def test_the_same_batch_again_refuses_the_same_and_stores_nothing_new() -> None:
    store = MemoryStore()
    save_policy(store, "acme", Policy((Rule("llama", DAY),)))
    rows = [Row(f"l{i}", ts=T0 + i * DAY, stream=stream(0)) for i in range(4)]
    record = Record(encode_frame(make_frame(rows)), T0 + 3 * DAY, "1")
    reports = [
        ingest_batch([record], store=store, source="k", first="1", last="1") for _ in range(2)
    ]
    assert [(one.lines, one.refused, len(one.committed)) for one in reports] == [
        (2, 2, len(reports[0].committed)),
        (2, 2, 0),
    ]


def test_a_frame_that_comes_again_is_refused_once_in_what_is_told() -> None:
    store = MemoryStore()
    save_policy(store, "acme", Policy((Rule("llama", DAY),)))
    first = [Row(f"l{i}", ts=T0 + i * DAY, stream=stream(0)) for i in range(4)]
    second = [Row(f"m{i}", ts=T0, stream=stream(i)) for i in range(2)]
    frames = [
        make_frame(first, number=1),
        make_frame(second, first_seq={stream(0): 4}, number=2),
    ]
    for name, taken in (("1", frames), ("2", frames[:1]), ("3", frames[1:])):
        records = [Record(encode_frame(frame), T0 + 3 * DAY, name) for frame in taken]
        ingest_batch(records, store=store, source="k", first=name, last=name)
    told = Client(store=store, tenant="acme").search("", run="llama").completeness.dropped
    assert [(one["rank"], one["lines"], one["reason"]) for one in told] == [
        (0, 3, "retention"),
        (1, 1, "retention"),
    ]


def test_points_below_the_floor_are_refused_too() -> None:
    store = MemoryStore()
    save_policy(store, "acme", Policy((Rule("llama", DAY),)))
    put_points(store, "1", [Point({"loss": 1.0}, ts=T0 - 50 * DAY, iteration=1)])
    assert list(store.list("acme/data/")) == []
