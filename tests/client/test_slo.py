"""Objectives over a period: what indexes say is stored, late, lost or deleted; what was measured; where asked."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from ranklog.api.local import make_handler
from ranklog.client import Client
from ranklog.client.reader import local_reader
from ranklog.client.slo import read_slo, stored_lines
from ranklog.ingest.batch import ingest_batch
from ranklog.layout import keys
from ranklog.limits import HOUR_NS
from ranklog.model.frame import Drop, Fence, FrameStream
from ranklog.model.record import Record
from ranklog.objectives.judge import Stored
from ranklog.objectives.recorder import Recorder
from ranklog.objectives.targets import OBJECTIVES, set_targets
from ranklog.store.memory import MemoryStore
from ranklog.stream.frames import encode_frame
from tests.api.job import NOW_NS, START_NS, call, frame_of
from tests.ingest.frames import T0, Row, make_frame, stream

ONE = replace(stream(), certified="producer")
HOUR = T0 // HOUR_NS
OCTETS = {"content-type": "application/octet-stream"}


def put(store: MemoryStore, first: int, count: int, *notes: FrameStream, number: int = 0) -> None:
    """Lines of seq first, first + 1, … a second each."""
    rows = [Row(f"line {at}", T0 + at * 10**9, ONE) for at in range(first, first + count)]
    frame = make_frame(rows, first_seq={ONE: first}, streams=notes, number=number or first + 1)
    record = Record(encode_frame(frame), T0, f"{first:04d}")
    ingest_batch([record], store=store, source="s", first=f"{first:04d}", last=f"{first:04d}")


def stored(store: MemoryStore) -> Stored:
    found, unread = stored_lines(local_reader(store, "acme"), T0, T0 + HOUR_NS)
    assert unread == []
    return found


def test_lines_that_are_there_are_neither_missing_nor_lost() -> None:
    store = MemoryStore()
    put(store, 0, 5)
    put(store, 5, 3)
    found = stored(store)
    assert (found.lines, found.missing, found.lost, found.streams) == (8, 0, 0, 1)
    assert found.streams_behind == 1


def test_a_hole_before_stored_lines_is_lost_and_lines_that_are_only_known_of_are_late() -> None:
    store = MemoryStore()
    put(store, 0, 5)
    put(store, 8, 2)
    put(store, 14, 0, FrameStream(ONE, 14, 0, fences=(Fence(HOUR, ((0, 14),)),)))
    found = stored(store)
    assert (found.lines, found.missing, found.lost) == (7, 3 + 4, 3)


def test_lines_that_are_stored_twice_count_once() -> None:
    store = MemoryStore()
    put(store, 0, 6)
    put(store, 3, 6, number=9)
    assert stored(store).lines == 9


def test_lines_of_a_segment_that_is_gone_are_lost_unless_another_has_them() -> None:
    store = MemoryStore()
    put(store, 0, 6)
    [segment] = [info.key for info in store.list("acme/data/")]
    put(store, 3, 6, number=9)
    store.delete(segment)
    found = stored(store)
    assert (found.lines, found.missing, found.lost) == (6, 3, 3)


def test_an_index_that_went_with_its_segment_lost_nothing() -> None:
    store = MemoryStore()
    put(store, 0, 6)
    for info in [*store.list("acme/data/"), *store.list("acme/index/"), *store.list("acme/runs/")]:
        store.delete(info.key)
    assert stored(store) == Stored()


def test_what_a_producer_dropped_is_told_and_not_missing() -> None:
    store = MemoryStore()
    put(store, 0, 5, FrameStream(ONE, 0, 0, drops=(Drop(7, "quota"),)))
    found = stored(store)
    assert (found.dropped, found.missing) == (7, 0)


def test_a_damaged_index_is_named() -> None:
    store = MemoryStore()
    put(store, 0, 5)
    [index] = [info.key for info in store.list("acme/index/")]
    store.put(index, b"no index")
    _, unread = stored_lines(local_reader(store, "acme"), T0, T0 + HOUR_NS)
    assert [item["segment"] for item in unread] == [index]


@settings(deadline=None, max_examples=25)
@given(st.lists(st.booleans(), max_size=12))
def test_of_frames_that_are_there_or_not_the_lines_add_up(others: list[bool]) -> None:
    store, there = MemoryStore(), [True, *others]
    for at, is_there in enumerate(there):
        if is_there:
            put(store, 2 * at, 2)
    reached = 2 * (max(at for at, here in enumerate(there) if here) + 1)
    found = stored(store)
    assert found.lines == 2 * sum(there)
    assert found.lines + found.missing == reached
    assert found.lost == found.missing


def test_what_serve_measured_is_reported_and_an_api_says_the_same() -> None:
    store = MemoryStore()
    recorder = Recorder(store, every_s=0, clock_ns=lambda: NOW_NS)
    api = make_handler(store, clock_ns=lambda: NOW_NS, recorder=recorder)
    assert call(api, "POST", "/v1/frames", frame_of(), headers=OCTETS)[0] == 202
    assert call(api, "POST", "/v1/search", {"query": "odd", "since": "2026-01-01"})[0] == 200
    period = {"since": "2026-01-01", "until": "2026-01-02"}
    answer = Client(store=store, tenant="default").slo(**period)
    named = {item["objective"]: item for item in answer.objectives}
    assert named.keys() == {one.name for one in OBJECTIVES}
    assert answer.from_ns == START_NS and answer.counts["lines"] == answer.stored["lines"] == 13
    assert named["freshness_p99_ms"]["of"] == 13 and named["freshness_p99_ms"]["met"] is True
    assert named["delay_p99_ms"]["met"] is False  # 600 s by the clock of this test
    assert named["completeness"]["value"] == named["durability"]["value"] == 1.0
    assert (named["query_p50_ms"]["of"], named["answers_whole"]["of"]) == (1, 1)
    status, said, _ = call(api, "GET", "/v1/slo", query=period)
    assert status == 200
    assert read_slo(said).to_json() == answer.to_json() == said
    # it is no question of a user's
    assert call(api, "GET", "/v1/slo", query=period)[1]["counts"]["queries"] == 1


def test_a_tenants_own_targets_decide() -> None:
    store = MemoryStore()
    api = make_handler(store, clock_ns=lambda: NOW_NS)
    call(api, "POST", "/v1/frames", frame_of(), headers=OCTETS)
    set_targets(store, "default", {"delay_p99_ms": 3_600_000, "freshness_p99_ms": None})
    answer = Client(store=store, tenant="default").slo(since="2026-01-01", until="2026-01-02")
    named = {item["objective"]: item for item in answer.objectives}
    assert named["delay_p99_ms"]["met"] is True
    assert named["freshness_p99_ms"]["met"] is None
    assert not answer.missed and answer.measured


def test_a_tenant_without_lines_has_nothing_to_judge() -> None:
    answer = Client(store=MemoryStore(), tenant="t").slo()
    assert not answer.measured and not answer.missed


def test_measures_of_an_unknown_name_are_not_told() -> None:
    store = MemoryStore()
    key = keys.measures_key("t", START_NS // HOUR_NS, "p")
    store.put(key, b'{"version":1,"minutes":{"0":{"counts":{"newer":1,"lines":2},"ms":{}}}}')
    answer = Client(store=store, tenant="t").slo(since="2026-01-01", until="2026-01-02")
    assert answer.counts == {"lines": 2}
