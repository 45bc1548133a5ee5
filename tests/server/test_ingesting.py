"""The role ingest: batches by window, a store that is away, one consumer at a time."""

from __future__ import annotations

import itertools
import threading
import time
from pathlib import Path

import pytest

from ranklog import limits
from ranklog.client import Client
from ranklog.errors import Unavailable
from ranklog.ingest.local import consumer_of
from ranklog.server import ingesting
from ranklog.server.ingesting import ingest_until
from ranklog.store.memory import MemoryStore
from ranklog.stream.disk import DiskStream
from ranklog.stream.frames import encode_frame
from tests.ingest.frames import T0, Row, make_frame, stream


def frame(number: int) -> bytes:
    rows = [Row(f"line {number}", ts=T0 + number * limits.SECOND_NS, stream=stream(0))]
    return encode_frame(make_frame(rows, first_seq={stream(0): number}, number=number))


class Away(MemoryStore):
    """Takes nothing for the first so many PUTs."""

    def __init__(self, failures: int) -> None:
        super().__init__()
        self.failures = failures

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> str:
        if self.failures:
            self.failures -= 1
            raise Unavailable("away")
        return super().put(key, data, if_absent=if_absent)


def texts(store: MemoryStore) -> list[str]:
    found = Client(store=store, tenant="acme").search("", run="llama", limit=None, order="oldest")
    return [line.text for line in found.lines]


def ingest_all(folder: Path, store: MemoryStore, window_s: float = 0.0) -> list[str]:
    """Ingest until nothing waits; what was told."""
    told: list[str] = []
    stream_on_disk = DiskStream(folder)

    def done() -> bool:
        return stream_on_disk.waiting(consumer_of(store)) is None

    ingest_until(done, folder, store, window_s=window_s, tell=told.append)
    return told


def test_frames_are_stored_and_leave_the_stream(tmp_path: Path) -> None:
    store, waiting = MemoryStore(), DiskStream(tmp_path)
    for number in range(5):
        waiting.put("k", frame(number))
    ingest_all(tmp_path, store)
    assert texts(store) == [f"line {number}" for number in range(5)]
    assert len(list(waiting.read())) == 1  # the newest keeps its number


def test_a_store_that_is_away_is_told_once_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingesting, "RETRY_S", 0.001)
    store, waiting = Away(6), DiskStream(tmp_path)
    waiting.put("k", frame(0))
    assert ingest_all(tmp_path, store) == ["ingest waits: away", "ingest goes on"]
    assert texts(store) == ["line 0"]


def test_a_bad_frame_is_told_and_stops_no_other(tmp_path: Path) -> None:
    store, waiting = MemoryStore(), DiskStream(tmp_path)
    waiting.put("k", b"no frame")
    waiting.put("k", frame(0))
    [told] = ingest_all(tmp_path, store)
    assert told.startswith("quarantined: ")
    assert texts(store) == ["line 0"]


def test_frames_of_a_window_become_one_segment(tmp_path: Path) -> None:
    store, waiting = MemoryStore(), DiskStream(tmp_path)
    worker = threading.Thread(target=ingest_all, args=(tmp_path, store, 0.5))
    waiting.put("k", frame(0))
    worker.start()
    for number in range(1, 4):
        waiting.put("k", frame(number))
    worker.join(30)
    assert not worker.is_alive()
    assert len(list(store.list("acme/data/"))) == 1
    assert len(texts(store)) == 4


def test_only_one_process_consumes_and_another_takes_over(tmp_path: Path) -> None:
    waiting = DiskStream(tmp_path)
    looks = itertools.count()
    with waiting.consuming("c", lambda: False) as first:
        with waiting.consuming("c", lambda: next(looks) > 0) as second:
            assert (first, second) == (True, False)
        with waiting.consuming("other", lambda: False) as third:
            assert third
    with waiting.consuming("c", lambda: False) as later:
        assert later


def test_what_waits_is_told_from_what_is_committed(tmp_path: Path) -> None:
    waiting = DiskStream(tmp_path)
    assert waiting.waiting("c") is None
    before_ns = time.time_ns() - limits.SECOND_NS
    sequence = waiting.put("k", b"1234")
    found = waiting.waiting("c")
    assert found is not None and found[0] >= before_ns and found[1] > 4
    waiting.commit("c", sequence)
    assert waiting.waiting("c") is None
