"""Small objects never pile up: a planner meets a bounded number of them, whatever came in."""

from __future__ import annotations

import random

import pytest

from ranklog.client.indexes import IndexCache
from ranklog.errors import Corrupt, NewerVersion
from ranklog.ingest.batch import ingest_batch
from ranklog.layout.bundle import encode_bundle, member_key, object_key, open_indexes
from ranklog.layout.index import SegmentIndex
from ranklog.limits import COMPACT_OBJECTS_MAX, HOUR_NS, SECOND_NS
from ranklog.model.record import Record
from ranklog.stream.frames import encode_frame
from tests.compact.stores import GRACE_NS, SteppedStore, answered, compact
from tests.ingest.frames import STREAM, T0, Row, make_frame

MINUTE_NS = 60 * SECOND_NS


def say(store: SteppedStore, number: int, ts: int) -> None:
    """One line, in a batch of its own."""
    data = encode_frame(make_frame([Row(f"line {number}", ts=ts)], first_seq={STREAM: number}))
    name = f"{number:06d}"
    report = ingest_batch([Record(data, ts, name)], store=store, source="k", first=name, last=name)
    assert report.bad == []


def objects_read(store: SteppedStore) -> int:
    """Index objects that a planner without a cache GETs for everything."""
    gets: list[str] = []

    class Counting:
        def get(self, key: str) -> bytes:
            gets.append(key)
            return store.get(key)

    loaded = IndexCache(Counting()).load(store.names("index/"))  # type: ignore[arg-type]
    assert loaded.failed == []
    return len(gets)


def test_an_hour_of_tiny_batches_is_few_objects_while_it_goes_on_and_one_when_it_is_over() -> None:
    store, rng, number = SteppedStore(), random.Random(1), 0
    for minute in range(40):
        for _ in range(rng.randint(1, 4)):
            store.clock_ns = T0 + minute * MINUTE_NS + rng.randrange(MINUTE_NS)
            say(store, number, store.clock_ns)
            number += 1
        store.clock_ns = T0 + (minute + 1) * MINUTE_NS
        compact(store)
        assert objects_read(store) <= minute + 1 + 2 * 4
    assert number > 80 and len(answered(store, "*")) == number
    store.clock_ns = T0 + 2 * HOUR_NS
    compact(store)
    assert objects_read(store) == 1
    store.clock_ns += GRACE_NS
    compact(store)
    assert len(store.names("index/")) == len(store.names("data/")) == 1
    assert len(answered(store, "*")) == number


def test_many_minutes_of_bundles_become_one_and_their_copies_go() -> None:
    store = SteppedStore()
    for number in range(3 * COMPACT_OBJECTS_MAX):  # late: the hour was over long ago
        store.clock_ns = T0 + number * MINUTE_NS // 3
        say(store, number, T0 + 50 * HOUR_NS + number)
    store.clock_ns = T0 + 3 * HOUR_NS
    compact(store)
    assert objects_read(store) <= COMPACT_OBJECTS_MAX
    store.clock_ns += GRACE_NS
    compact(store)
    assert len(store.names("index/")) <= COMPACT_OBJECTS_MAX
    assert len(store.names("data/")) == 3 * COMPACT_OBJECTS_MAX


def test_late_arrivals_pile_up_to_a_bound() -> None:
    store = SteppedStore()
    for number in range(100):
        store.clock_ns = T0 + 50 * HOUR_NS + number * SECOND_NS
        rows = [Row(f"hour {hour}", ts=T0 + hour * HOUR_NS + number) for hour in range(3)]
        data = encode_frame(make_frame(rows, first_seq={STREAM: 3 * number}))
        name = f"{number:06d}"
        ingest_batch(
            [Record(data, store.clock_ns, name)], store=store, source="k", first=name, last=name
        )
        if number % 20 == 19:
            compact(store)
    store.clock_ns += GRACE_NS
    compact(store)
    late = [key for key in store.names("index/") if "/late/" in key]
    assert len(late) <= 16
    pointers = store.names("arrivals/")
    store.clock_ns += 4 * 24 * HOUR_NS
    compact(store)
    assert pointers and store.names("arrivals/") == []
    assert len(answered(store, "*")) == 300


def indexes(count: int) -> list[tuple[str, bytes]]:
    store = SteppedStore()
    for number in range(count):
        say(store, number, T0 + number)
    return [(key, store.get(key)) for key in store.names("index/")]


def test_a_bundle_gives_back_the_indexes_it_was_made_of() -> None:
    members = indexes(3)
    bundle = encode_bundle(members)
    found = open_indexes(bundle, "b")
    assert [(index.key, bytes(index.data)) for index in found] == members
    assert open_indexes(members[0][1], "k")[0].key == "k"
    assert object_key(member_key("b.idx", 2)) == "b.idx" and object_key("b.idx") == "b.idx"


def test_of_a_merged_index_that_goes_while_it_is_read_the_bundle_has_a_copy() -> None:
    store = SteppedStore()
    for number in range(3):
        say(store, number, T0 + number)
    compact(store)
    [merged] = [key for key in store.names("index/") if ".~1." in key]
    copy = merged.replace(".~1.", ".~0.")
    store.put(copy, encode_bundle([(merged, store.get(merged))]))
    listed = store.names("index/")
    store.delete(merged)  # compaction, after the LIST
    loaded = IndexCache(store).load(listed)
    assert loaded.failed == []
    assert [index.key for index in loaded.indexes] == [merged]
    assert merged in loaded.opened


def test_a_bundle_is_no_index() -> None:
    with pytest.raises(Corrupt, match="damaged index: b"):
        SegmentIndex.open(encode_bundle(indexes(1)), "b")


def test_a_damaged_bundle_is_said_to_be_and_a_newer_one_too() -> None:
    bundle = encode_bundle(indexes(2))
    for at in range(len(bundle)):
        data = bytearray(bundle)
        data[at] ^= 0xFF
        with pytest.raises((Corrupt, NewerVersion)):
            for index in open_indexes(bytes(data), "b"):
                index.check()
    for end in range(len(bundle)):
        with pytest.raises(Corrupt):
            for index in open_indexes(bundle[:end], "b"):
                index.check()
    newer = bundle[:4] + b"\x06\x00" + bundle[6:]
    with pytest.raises(NewerVersion, match="index of version 6, this is 5"):
        open_indexes(newer, "b")
