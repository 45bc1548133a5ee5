"""The ingest function: what it answers Lambda, and that nothing is lost or doubled by it."""

from __future__ import annotations

import base64
import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ranklog.errors import BadInput, Unavailable
from ranklog.layout.index import SegmentIndex
from ranklog.serverless.invocation import Failed
from ranklog.store import DiskStore
from tests.aws.conftest import Load

Read = Callable[[str], dict[str, Any]]


@pytest.fixture
def store(tmp_path: Path) -> DiskStore:
    return DiskStore(tmp_path / "store")


def is_kept_beside(key: str) -> bool:
    """Whether an object is of what was counted or measured, which no batch depends on."""
    return "/usage/" in key or "/measures/" in key


def keys(store: DiskStore) -> list[str]:
    return [found.key for found in store.list("") if not is_kept_beside(found.key)]


def lines(store: DiskStore) -> int:
    """Rows of all indexes, duplicates included."""
    found = 0
    for info in store.list("acme/index/"):
        head = SegmentIndex.open(store.get(info.key), info.key).head
        found += sum(entry.lines for entry in head.streams)
    return found


def test_a_batch_is_stored_and_acknowledged(
    load_function: Load, store: DiskStore, read_event: Read
) -> None:
    ingest = load_function("ingest", RANKLOG_STORE=store.url)
    assert ingest(read_event("ingest")) == {"batchItemFailures": []}
    assert lines(store) == 4
    assert any(key.startswith("acme/runs/llama-8b/4711/hours/2026-01-02T") for key in keys(store))


def test_the_same_batch_again_stores_nothing(
    load_function: Load, store: DiskStore, read_event: Read
) -> None:
    load_function("ingest", RANKLOG_STORE=store.url)(read_event("ingest"))
    before = keys(store)
    # a cold start in between: nothing is remembered outside the store
    again = load_function("ingest", RANKLOG_STORE=store.url)
    assert again(read_event("ingest")) == {"batchItemFailures": []}
    assert keys(store) == before


def test_a_poison_frame_is_quarantined_and_fails_nothing(
    load_function: Load, store: DiskStore, read_event: Read
) -> None:
    event = read_event("ingest")
    poison = json.loads(json.dumps(event["Records"][0]))
    poison["kinesis"]["data"] = base64.b64encode(b"not a frame").decode()
    poison["kinesis"]["sequenceNumber"] += "9"
    event["Records"].insert(1, poison)
    ingest = load_function("ingest", RANKLOG_STORE=store.url)
    assert ingest(event) == {"batchItemFailures": []}
    assert lines(store) == 4
    [quarantined] = [k for k in keys(store) if "/quarantine/" in k and not k.endswith(".json")]
    assert store.get(quarantined) == b"not a frame"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EACCES])
def test_a_store_that_fails_brings_the_batch_again_from_its_first_record(
    load_function: Load,
    store: DiskStore,
    read_event: Read,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
) -> None:
    event = read_event("ingest")
    ingest = load_function("ingest", RANKLOG_STORE=store.url)

    def fails(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", fails)
        first = event["Records"][0]["kinesis"]["sequenceNumber"]
        assert ingest(event) == {"batchItemFailures": [{"itemIdentifier": first}]}
    assert ingest(event) == {"batchItemFailures": []}
    assert lines(store) == 4


@pytest.mark.parametrize("puts", range(4))
def test_a_batch_that_broke_at_any_put_is_whole_after_the_retry(
    load_function: Load,
    store: DiskStore,
    read_event: Read,
    monkeypatch: pytest.MonkeyPatch,
    puts: int,
) -> None:
    ingest = load_function("ingest", RANKLOG_STORE=store.url)
    put = DiskStore.put
    left = [puts]

    def breaking(self: DiskStore, key: str, data: bytes, *, if_absent: bool = False) -> str:
        if is_kept_beside(key):
            return ""
        left[0] -= 1
        if left[0] < 0:
            raise Unavailable("gone")
        return put(self, key, data, if_absent=if_absent)

    with monkeypatch.context() as patch:
        patch.setattr(DiskStore, "put", breaking)
        first = ingest(read_event("ingest"))
    assert bool(first["batchItemFailures"]) == (left[0] < 0)
    assert ingest(read_event("ingest")) == {"batchItemFailures": []}
    assert lines(store) == 4


def test_a_bug_is_raised_so_that_lambda_halves_the_batch(
    load_function: Load, store: DiskStore, read_event: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest = load_function("ingest", RANKLOG_STORE=store.url)

    def bug(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(ingest.module, "ingest_batch", bug)  # type: ignore[attr-defined]
    with pytest.raises(Failed, match="ZeroDivisionError"):
        ingest(read_event("ingest"))


def test_another_trigger_is_refused(load_function: Load, store: DiskStore) -> None:
    ingest = load_function("ingest", RANKLOG_STORE=store.url)
    with pytest.raises(BadInput, match="not an event of a Kinesis stream"):
        ingest({"Records": [{"eventSource": "aws:s3", "s3": {}}]})


def test_a_function_without_its_store_says_so(
    load_function: Load, read_event: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RANKLOG_STORE", raising=False)
    with pytest.raises(BadInput, match="RANKLOG_STORE is not set"):
        load_function("ingest")(read_event("ingest"))


def test_the_log_holds_no_text_of_lines(
    load_function: Load, store: DiskStore, read_event: Read, capsys: pytest.CaptureFixture[str]
) -> None:
    event = read_event("ingest")
    event["Records"][0]["kinesis"]["data"] = base64.b64encode(b"secret text").decode()
    load_function("ingest", RANKLOG_STORE=store.url)(event)
    out = capsys.readouterr().out
    written = [json.loads(line) for line in out.splitlines()]
    assert [entry["message"] for entry in written if "_aws" not in entry]
    assert "secret text" not in out and "CUDA" not in out and "grad_norm" not in out
