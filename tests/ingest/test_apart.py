"""A frame that breaks ingest is found and set aside; all others of its batch are stored."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranklog.client import Client
from ranklog.errors import Unavailable
from ranklog.ingest import batch as batch_module
from ranklog.ingest.batch import IngestReport, ingest_batch
from ranklog.ingest.quarantine import find_entry, list_entries
from ranklog.ingest.replay import replay_entry
from ranklog.model.record import Record
from ranklog.store.memory import MemoryStore
from ranklog.stream.frames import encode_frame
from tests.ingest.frames import STREAM, T0, Row, make_frame


def record(seq: int) -> Record:
    frame = make_frame([Row(f"line {seq}")], first_seq={STREAM: seq}, number=seq)
    return Record(encode_frame(frame), T0 + seq, f"{seq:03d}")


def ingest(store: MemoryStore, count: int) -> IngestReport:
    records = [record(seq) for seq in range(count)]
    return ingest_batch(
        records, store=store, source="s", first=records[0].sequence, last=records[-1].sequence
    )


def texts(store: MemoryStore) -> set[str]:
    client = Client(store=store, tenant="acme")
    return {line.text for line in client.search("line", limit=None, since="2026-02-28").lines}


def broken_on(bad: set[int], error: type[Exception], patch: pytest.MonkeyPatch) -> None:
    """Ingest as it would be with a bug that these frames meet."""
    gather = batch_module.gather

    def buggy(received: Any) -> Any:
        if any(item.frame.number in bad for item in received):
            raise error("a bug of ours")
        return gather(received)

    patch.setattr(batch_module, "gather", buggy)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 12), st.sets(st.integers(0, 11), max_size=4))
def test_only_the_frames_that_break_it_are_set_aside(count: int, bad: set[int]) -> None:
    store = MemoryStore()
    with pytest.MonkeyPatch.context() as patch:
        broken_on(bad, ZeroDivisionError, patch)
        report = ingest(store, count)
        again = ingest(store, count)  # as Kinesis delivers it
    assert {item.code for item in report.bad} <= {"failed"}
    kept = {int(entry.sequence) for entry in list_entries(store, "acme")}
    assert kept == bad & set(range(count)) == {int(item.sequence) for item in again.bad}
    assert texts(store) == {f"line {seq}" for seq in range(count) if seq not in bad}
    assert report.lines == count - len(kept)


def test_after_an_update_it_is_replayed() -> None:
    store = MemoryStore()
    with pytest.MonkeyPatch.context() as patch:
        broken_on({1}, KeyError, patch)
        ingest(store, 3)
    [entry] = list_entries(store, "acme")
    assert entry.reason == "ingest failed: KeyError('a bug of ours')"
    found = find_entry(store, "acme", entry.entry_id)
    assert replay_entry(store, found, seals=None, rules=None, now_ns=T0).state == "replayed"
    assert texts(store) == {"line 0", "line 1", "line 2"}


@pytest.mark.parametrize("error", [Unavailable, MemoryError, OSError])
def test_what_is_no_frames_fault_is_raised_and_nothing_is_set_aside(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = MemoryStore()
    broken_on({1}, error, monkeypatch)
    with pytest.raises(error):
        ingest(store, 3)
    assert list(list_entries(store, "acme")) == []
