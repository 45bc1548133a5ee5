"""Frames that are set aside, why, and storing them after a fix."""

from __future__ import annotations

import struct

import pytest

from ranklog.access.key_text import parse_ingest_key
from ranklog.access.manage import create_ingest_key
from ranklog.access.policy import Policy, write_policy
from ranklog.access.seals import Seals
from ranklog.client import Client
from ranklog.errors import NotFound
from ranklog.ingest import records
from ranklog.ingest.batch import IngestReport, ingest_batch
from ranklog.ingest.quarantine import Entry, expire, find_entry, list_entries, mark_replayed
from ranklog.ingest.replay import replay_entry
from ranklog.limits import DAY_NS
from ranklog.model.record import Record
from ranklog.store.memory import MemoryStore
from ranklog.stream.frames import encode_frame, seal_frame
from tests.ingest.frames import T0, Row, make_frame


def ingest(store: MemoryStore, *found: bytes) -> IngestReport:
    return ingest_batch(
        [Record(data, T0 + 5, f"q{at}") for at, data in enumerate(found)],
        store=store,
        seals=Seals(store),
        source="s",
        first="q0",
        last=f"q{len(found) - 1}",
    )


def replay(store: MemoryStore, entry: Entry) -> tuple[str, int, str]:
    done = replay_entry(store, entry, seals=Seals(store), rules=None, now_ns=T0 + 9)
    return done.state, done.lines, done.code


def texts(store: MemoryStore, tenant: str = "acme") -> list[str]:
    return sorted(
        line.text for line in Client(store=store, tenant=tenant).search("*", limit=None).lines
    )


def frame(text: str, number: int = 1, tenant: str = "acme") -> bytes:
    made = make_frame([Row(text)], number=number, first_seq=None)
    return encode_frame(made)


def test_each_reason_is_kept_with_time_and_size_and_good_frames_are_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = MemoryStore()
    secret = parse_ingest_key(create_ingest_key(store, "acme", now_ns=T0)[0]).secret
    write_policy(store, "acme", Policy(signed_required=True))
    good = seal_frame(frame("good"), secret)
    newer = bytearray(good)
    newer[4] = 200
    monkeypatch.setattr(records, "FRAME_RECORD_BYTES_MAX", 5_000)
    bad = [
        frame("unsigned"),
        seal_frame(frame("forged"), b"k" * 32),
        seal_frame(frame("a"), secret)[:-1],
        seal_frame(encode_frame(make_frame([Row("a\nb")])), secret),
        bytes(newer),
        b"junk",
        b"x" * 5_001,
    ]
    report = ingest(store, good, *bad)
    assert (report.lines, texts(store)) == (1, ["good"])
    codes = ["unsigned", "forged", "malformed", "malformed", "unknown_version"]
    assert [item.code for item in report.bad] == [*codes, "malformed", "oversized"]
    entries = [*list_entries(store, "acme"), *list_entries(store, None)]
    assert [(e.entry_id, e.code, e.length, e.arrival_ns) for e in entries] == [
        ("2026-03-01/s.q1", "unsigned", len(bad[0]), T0 + 5),
        ("2026-03-01/s.q2", "forged", len(bad[1]), T0 + 5),
        ("2026-03-01/s.q4", "malformed", len(bad[3]), T0 + 5),
        ("2026-03-01/s.q3", "malformed", len(bad[2]), T0 + 5),
        ("2026-03-01/s.q5", "unknown_version", len(bad[4]), T0 + 5),
        ("2026-03-01/s.q6", "malformed", 4, T0 + 5),
        ("2026-03-01/s.q7", "oversized", 5_001, T0 + 5),
    ]
    assert entries[3].reason.startswith("frame of ")


def test_a_forgers_payload_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    create_ingest_key(store, "acme", now_ns=T0)

    def unpacked(*given: object) -> None:
        raise AssertionError("unpacked")

    monkeypatch.setattr(records, "decode_frame", unpacked)
    assert ingest(store, seal_frame(frame("a"), b"k" * 32)).bad[0].code == "forged"


def test_the_same_batch_again_sets_aside_nothing_new() -> None:
    store = MemoryStore()
    ingest(store, b"junk", frame("a"))
    before = [found.key for found in store.list("")]
    ingest(store, b"junk", frame("a"))
    assert [found.key for found in store.list("")] == before


def test_a_frame_is_stored_once_after_its_key_was_added_however_often_it_is_replayed() -> None:
    store = MemoryStore()
    made = MemoryStore()  # the key is made elsewhere, and here later
    text, _ = create_ingest_key(made, "acme", now_ns=T0)
    ingest(store, seal_frame(frame("late"), parse_ingest_key(text).secret))
    [entry] = list_entries(store, "acme")
    assert replay(store, entry) == ("refused", 0, "forged")
    assert (texts(store), next(list_entries(store, "acme")).replayed_ns) == ([], None)
    [key] = list(made.list(""))
    store.put(key.key, made.get(key.key))
    assert replay(store, entry) == ("replayed", 1, "")
    assert replay(store, entry) == ("replayed", 1, "")  # as after a death before the mark
    assert texts(store) == ["late"]
    [marked] = list_entries(store, "acme")
    assert (marked.replayed_ns, replay(store, marked)[0]) == (T0 + 9, "already")


def test_what_a_retry_stored_meanwhile_is_not_doubled_by_a_replay() -> None:
    store = MemoryStore()
    write_policy(store, "acme", Policy(signed_required=True))
    ingest(store, frame("a"))
    write_policy(store, "acme", Policy())
    ingest(store, frame("a"))
    [entry] = list_entries(store, "acme")
    assert replay(store, entry)[0] == "replayed"
    assert texts(store) == ["a"]


def test_a_record_whose_note_was_lost_is_still_there() -> None:
    store = MemoryStore()
    ingest(store, b"junk")
    store.delete("_unknown/quarantine/2026-03-01/s.q0.json")
    [entry] = list_entries(store, None)
    assert (entry.code, entry.source, entry.sequence) == ("unknown", "s", "q0")


@pytest.mark.parametrize(
    "entry_id",
    ["", "x", "2026-03-01/s.q9", "2026-03-01/s.q0.json", "../data/x", "2026-03-01/../..", "a/b/c"],
)
def test_only_what_is_in_quarantine_is_found(entry_id: str) -> None:
    store = MemoryStore()
    ingest(store, b"junk")
    with pytest.raises(NotFound):
        find_entry(store, None, entry_id)


def test_names_of_sources_and_numbers_reach_no_other_place() -> None:
    store = MemoryStore()
    ingest_batch(
        [Record(b"junk", T0, "../../x.json")], store=store, source="../s", first="1", last="1"
    )
    [entry] = list_entries(store, None)
    assert (entry.source, entry.sequence) == ("../s", "../../x.json")
    assert all(found.key.startswith("_unknown/quarantine/") for found in store.list(""))


def test_a_version_that_can_be_read_by_now_is_replayed() -> None:
    store = MemoryStore()
    data = bytearray(frame("a"))
    version = data[4]
    struct.pack_into("<B", data, 4, 99)
    ingest(store, bytes(data))
    [entry] = list_entries(store, None)
    assert replay(store, entry) == ("refused", 0, "unknown_version")
    data[4] = version  # as an update of the reader would make it
    store.put(entry.key, bytes(data))
    assert replay(store, entry) == ("replayed", 1, "")
    assert texts(store) == ["a"]


def test_quarantine_is_kept_30_days_and_what_was_stored_a_week() -> None:
    store = MemoryStore()
    ingest(store, frame("a"), b"junk", frame("a\nb"))
    [entry] = list_entries(store, "acme")
    arrived = entry.arrival_ns
    assert expire(store, "acme", arrived + 30 * DAY_NS - 1) == {}
    mark_replayed(store, entry, arrived + DAY_NS)
    assert expire(store, "acme", arrived + 8 * DAY_NS - 1) == {}
    assert expire(store, "acme", arrived + 8 * DAY_NS) == {"replayed": 1}
    assert list(store.list("acme/quarantine/")) == []
    assert expire(store, None, arrived + 30 * DAY_NS) == {"malformed": 1}
    assert list(store.list("_unknown/")) == []
    assert texts(store) == ["a"]


def test_a_removal_that_was_cut_short_is_ended_by_the_next() -> None:
    store = MemoryStore()
    ingest(store, b"junk")
    store.delete(next(store.list("_unknown/")).key)
    assert len(list(store.list("_unknown/"))) == 1
    assert expire(store, None, T0) == {}
    assert list(store.list("_unknown/")) == []
