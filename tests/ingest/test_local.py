"""A disk stream into a store: once, in batches, and on from where it stood."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranklog.client import Client
from ranklog.ingest import local
from ranklog.store.memory import MemoryStore
from ranklog.stream.disk import DiskStream
from ranklog.stream.frames import encode_frame
from tests.ingest.frames import STREAM, Row, make_frame


def put(disk: DiskStream, first: int, *texts: str) -> None:
    rows = [Row(text) for text in texts]
    frame = make_frame(rows, first_seq={STREAM: first}, number=first + 1)
    disk.put("key", encode_frame(frame))


def texts(store: MemoryStore) -> list[str]:
    answer = Client(store=store, tenant=STREAM.tenant).search("", limit=None, order="oldest")
    return [line.text for line in answer.lines]


def test_a_stream_goes_on_where_it_stood(tmp_path: Path) -> None:
    disk, store = DiskStream(tmp_path, sync=False), MemoryStore()
    put(disk, 0, "a", "b")
    assert [report.lines for report in local.ingest_stream(disk, store)] == [2]
    assert list(local.ingest_stream(disk, store)) == []
    put(disk, 2, "c")
    assert [report.lines for report in local.ingest_stream(disk, store)] == [1]
    assert texts(store) == ["a", "b", "c"]


def test_a_batch_that_was_not_checked_off_is_stored_once(tmp_path: Path) -> None:
    disk, store = DiskStream(tmp_path, sync=False), MemoryStore()
    put(disk, 0, "a", "b")
    next(iter(local.ingest_stream(disk, store)))
    for path in (tmp_path / "consumers").iterdir():
        path.unlink()
    put(disk, 2, "c")
    assert [report.lines for report in local.ingest_stream(disk, store)] == [3]
    assert texts(store) == ["a", "b", "c"]


def test_batches_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "LOCAL_BATCH_BYTES_MAX", 1)
    disk = DiskStream(tmp_path, sync=False)
    for first in range(3):
        put(disk, first, f"line {first}")
    assert [report.lines for report in local.ingest_stream(disk, MemoryStore())] == [1, 1, 1]


def test_two_stores_are_two_consumers_and_two_streams_two_sources(tmp_path: Path) -> None:
    disk, other = DiskStream(tmp_path / "one", sync=False), DiskStream(tmp_path / "two", sync=False)
    assert disk.identity == DiskStream(tmp_path / "one").identity != other.identity
    put(disk, 0, "a")
    put(other, 1, "b")
    store = MemoryStore()
    assert [report.lines for report in local.ingest_stream(disk, store)] == [1]
    assert [report.lines for report in local.ingest_stream(other, store)] == [1]
    assert texts(store) == ["a", "b"]


def test_a_record_that_is_no_frame_is_set_aside(tmp_path: Path) -> None:
    disk, store = DiskStream(tmp_path, sync=False), MemoryStore()
    disk.put("key", b"no frame")
    put(disk, 0, "a")
    [report] = local.ingest_stream(disk, store)
    assert (report.lines, len(report.bad)) == (1, 1)
