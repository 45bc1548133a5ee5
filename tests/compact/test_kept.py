"""What must outlive compaction: what is pinned, fences and headers of frames; and what must not."""

from __future__ import annotations

import json
from typing import Any

from ranklog.answer.render import completeness_json, line_json
from ranklog.client import Client
from ranklog.compact.contents import Folder, folders, read_contents
from ranklog.compact.orphans import delete_orphan
from ranklog.ingest.batch import ingest_batch
from ranklog.layout import keys
from ranklog.limits import HOUR_NS, ORPHAN_AGE_S_MAX, SECOND_NS
from ranklog.model.frame import Drop, Fence, FrameStream, StreamEnd
from ranklog.model.index import StreamEntry
from ranklog.model.record import Record
from ranklog.stream.frames import encode_frame
from tests.compact.stores import GRACE_NS, SteppedStore, compact
from tests.ingest.frames import STREAM, T0, Row, make_frame, stream

HOUR = T0 // HOUR_NS
TWO = [stream(0), stream(1)]


def put(store: SteppedStore, name: str, rows: list[Row], **frame: Any) -> None:
    data = encode_frame(make_frame(rows, number=int(name), **frame))
    record = Record(data, T0 + 3 * HOUR_NS, name)
    report = ingest_batch([record], store=store, source="k", first=name, last=name)
    assert report.bad == []


def rows_of(number: int, count: int = 4) -> list[Row]:
    return [
        Row(f"step {number} {i}", ts=T0 + (number * 10 + i) * SECOND_NS, stream=TWO[i % 2])
        for i in range(count)
    ]


def filled(batches: int = 4) -> SteppedStore:
    store = SteppedStore()
    for number in range(batches):
        notes = [
            FrameStream(
                one,
                0,
                2 * number,
                fences=(Fence(HOUR, ((2 * number, 2 * number + 2),)),),
                drops=(Drop(3, "quota"),),
                end=StreamEnd(2 * batches, 0) if number == batches - 1 else None,
            )
            for one in TWO
        ]
        first = dict.fromkeys(TWO, 2 * number)
        put(store, str(number), rows_of(number), first_seq=first, streams=notes)
    return store


def heads(store: SteppedStore) -> list[Any]:
    found = []
    for folder in folders(store, "acme"):
        for contents in read_contents(store, folder):
            found += [index.head for index in contents.live()]
    return found


def test_fences_drops_ends_and_headers_of_frames_are_kept() -> None:
    store = filled()
    client = Client(store=store, tenant="acme")
    before = completeness_json(client.search("*").completeness)
    frames = {frame for head in heads(store) for frame in head.frames}
    for _ in range(3):
        compact(store)
        store.clock_ns += GRACE_NS
    [head] = heads(store)
    assert set(head.frames) == frames and len(frames) == 4
    assert head.streams[0].drops == tuple(Drop(3, "quota", ("0a", number)) for number in range(4))
    assert head.streams[0].fences == (Fence(HOUR, ((0, 8),)),)
    assert head.streams[0].end == StreamEnd(8, 0)
    after = Client(store=store, tenant="acme").search("*").completeness
    assert completeness_json(after) == before and after.state == "complete"


def test_a_hole_is_a_gap_after_compaction_too() -> None:
    store = SteppedStore()
    for number in (0, 1, 3):
        put(store, str(number), rows_of(number), first_seq=dict.fromkeys(TWO, 2 * number))
    before = completeness_json(Client(store=store, tenant="acme").search("*").completeness)
    compact(store)
    after = completeness_json(Client(store=store, tenant="acme").search("*").completeness)
    assert after["gaps"] == before["gaps"] and after["state"] == before["state"] == "gaps"
    assert (after["watermark_ns"] or 0) <= (before["watermark_ns"] or 0)


def test_deleted_rows_are_left_out_of_what_is_merged() -> None:
    store = filled()

    def hidden(entry: StreamEntry) -> list[tuple[int, int]]:
        return [(1, 3), (6, 99)] if entry.stream_id == TWO[0].stream_id else []

    report = compact(store, hidden=hidden)
    assert report.dropped == 4
    [head] = heads(store)
    assert {entry.stream_id: entry.ranges for entry in head.streams} == {
        TWO[0].stream_id: ((0, 1), (3, 6)),
        TWO[1].stream_id: ((0, 8),),
    }
    store.clock_ns += GRACE_NS
    compact(store, hidden=hidden)
    assert b"step 0 2" not in b"".join(store.get(key) for key in store.names("data/"))
    assert compact(store, hidden=hidden).merges == 0
    assert compact(store, hidden=lambda _: [(0, 99)]).merges == 1  # nothing is left but notes
    [head] = heads(store)
    assert head.segment is None and len(head.streams) == 2 and len(head.frames) == 4


def test_what_is_pinned_stays_and_has_the_same_lines() -> None:
    store = filled()
    asked = Client(store=store, tenant="acme").search("step", limit=None, pin=True)
    assert asked.pin is not None
    pinned = [json.dumps(line_json(line)) for line in asked.lines]
    names = set(store.names("index/")) | set(store.names("data/"))
    put(store, "9", rows_of(9), first_seq=dict.fromkeys(TWO, 8))
    for _ in range(3):
        compact(store)
        again = Client(store=store, tenant="acme").search(pin=asked.pin["id"])
        assert [json.dumps(line_json(line)) for line in again.lines] == pinned
        store.clock_ns += GRACE_NS
    assert names <= set(store.names(""))
    assert compact(store).pinned > 0
    for key in store.names("pins/"):
        store.delete(key)
    compact(store)
    assert not names & set(store.names(""))


def test_an_orphan_segment_goes_after_a_week_and_one_that_was_put_again_stays() -> None:
    store = filled()
    [*_, last] = store.names("index/")
    store.delete(last)
    orphan = set(store.names("data/")) - {head.segment.key for head in heads(store)}
    assert len(orphan) == 1
    store.clock_ns += ORPHAN_AGE_S_MAX * SECOND_NS - HOUR_NS
    compact(store)
    assert orphan <= set(store.names("data/"))
    [key] = orphan
    data = store.get(key)
    store.put(key, data)
    store.clock_ns += 2 * HOUR_NS
    compact(store)
    assert key in store.names("data/")
    store.clock_ns += ORPHAN_AGE_S_MAX * SECOND_NS
    assert compact(store).orphans == 1
    assert key not in store.names("data/")


def test_an_orphan_that_is_put_again_or_committed_while_it_is_looked_at_stays() -> None:
    store = filled()
    [*_, last] = store.names("index/")
    index = store.get(last)
    store.delete(last)
    [key] = set(store.names("data/")) - {head.segment.key for head in heads(store)}
    folder = Folder("acme", T0 // HOUR_NS)
    store.clock_ns += 2 * ORPHAN_AGE_S_MAX * SECOND_NS
    data = store.get(key)
    store.put(key, data)  # a stalled writer, right after it was listed
    assert not delete_orphan(store, folder, key, store.clock_ns)
    assert store.get(key) == data
    store.clock_ns += 2 * ORPHAN_AGE_S_MAX * SECOND_NS
    delete = store.delete

    def committed_meanwhile(name: str) -> None:
        store.delete = delete  # type: ignore[method-assign]
        delete(name)
        store.put(last, index)

    store.delete = committed_meanwhile  # type: ignore[method-assign]
    assert not delete_orphan(store, folder, key, store.clock_ns)
    assert store.get(key) == data
    store.delete(last)
    store.clock_ns += 2 * ORPHAN_AGE_S_MAX * SECOND_NS
    assert delete_orphan(store, folder, key, store.clock_ns)


def test_nothing_is_deleted_while_a_segment_of_what_replaced_it_is_missing() -> None:
    store = filled()
    kept = set(store.names("index/"))
    compact(store)
    [new] = set(store.names("index/")) - kept
    for key in store.names("data/"):
        if "/~1." in key:
            store.delete(key)
    store.clock_ns += GRACE_NS
    compact(store)
    assert kept | {new} == set(store.names("index/"))


def test_a_stream_that_has_nothing_new_is_left_alone() -> None:
    store = SteppedStore()
    put(store, "1", [Row("alone", ts=T0, stream=STREAM)])
    report = compact(store)
    assert (report.merges, report.bundles, report.deleted) == (0, 0, 0)


def test_the_name_of_what_replaces_covers_the_names_of_all_it_replaces() -> None:
    store = filled()
    old = [keys.parse_index_key(key) for key in store.names("index/")]
    compact(store)
    [new] = [keys.parse_index_key(key) for key in store.names("index/") if ".~1." in key]
    assert new.min_ts == min(name.min_ts for name in old)
    assert new.max_ts == max(name.max_ts for name in old)


def test_ancestors_go_first_and_an_index_before_its_segment() -> None:
    store = filled(3)
    compact(store)
    put(store, "9", rows_of(9), first_seq=dict.fromkeys(TWO, 8))
    compact(store)
    gone: list[str] = []
    delete = store.delete

    def noted(key: str) -> None:
        gone.append(key)
        delete(key)

    store.delete = noted  # type: ignore[method-assign]
    store.clock_ns += GRACE_NS
    compact(store)
    gone = [key for key in gone if "/compaction/" not in key]
    assert len(gone) == 2 * 5
    assert ["/index/" in key for key in gone] == [True] * 5 + [False] * 5
    assert [".~1." in key for key in gone[:5]] == [False] * 4 + [True]
