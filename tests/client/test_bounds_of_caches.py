"""Whoever asks for days keeps no more than whoever asks for minutes: each cache of a reader has a bound."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranklog.client import Client
from ranklog.client.indexes import IndexCache
from ranklog.client.local import Local
from ranklog.client.reader import Reader
from ranklog.client.results import Results
from ranklog.ingest.batch import ingest_batch
from ranklog.model.record import Record
from ranklog.scan import columns, direct, verify
from ranklog.scan.columns import Footers
from ranklog.scan.decoded import Decoded
from ranklog.scan.engine import shared_engine
from ranklog.scan.scatter import InProcess
from ranklog.scan.verify import Checked
from ranklog.store.disk import DiskStore
from ranklog.stream.frames import encode_frame
from tests.ingest.frames import STREAM, T0, Row, make_frame

ROUNDS, LINES = 18, 12
INDEX_BYTES, DECODED_BYTES, RESULT_BYTES = 120_000, 48_000, 200_000
FOOTERS, RANGES = 6, 9


def say(store: DiskStore, number: int) -> None:
    """A segment more."""
    first = number * LINES
    rows = [Row(f"step {n} loss {1 / (n + 1):.6f}", ts=T0 + n) for n in range(first, first + LINES)]
    data, name = encode_frame(make_frame(rows, first_seq={STREAM: first})), f"{number:06d}"
    ingest_batch([Record(data, T0, name)], store=store, source="k", first=name, last=name)


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> tuple[Decoded, Footers, Checked]:
    """What a process keeps for all its readers, empty and small."""
    decoded, footers = Decoded(DECODED_BYTES), Footers()
    checked = Checked(RANGES)
    for module in (columns, direct):
        monkeypatch.setattr(module, "DECODED", decoded)
    monkeypatch.setattr(direct, "FOOTERS", footers)
    monkeypatch.setattr(columns, "FOOTERS_KEPT_MAX", FOOTERS)
    monkeypatch.setattr(verify.check_file, "__defaults__", (checked,))
    return decoded, footers, checked


def test_caches_hold_their_bounds_however_much_is_asked_of_however_much(
    tmp_path: Path, shared: tuple[Decoded, Footers, Checked]
) -> None:
    store, (decoded, footers, checked) = DiskStore(str(tmp_path), create=True), shared
    engine, indexes = shared_engine(), IndexCache(store, bytes_max=INDEX_BYTES)
    results = Results(RESULT_BYTES)
    reader = Reader(
        store, "acme", InProcess(store, engine), engine.matches, indexes, results=results
    )
    client = Client(store=store, tenant="acme")
    client._backend = Local(store, "acme", reader)
    let_go: set[str] = set()
    for number in range(ROUNDS):
        say(store, number)
        last = (number + 1) * LINES - 1
        for words in (f'"step {last} "', f"/loss .*{number} ?/", f"loss 0.{number:02d}", "step"):
            found = client.search(words, run="llama", limit=None)
            assert words != "step" or len(found.lines) == last + 1
            client.count(words, run="llama")
        kept = [sum(len(index.data) for index in held) for held in indexes._kept.values()]
        assert indexes._bytes == 10 * sum(kept) <= INDEX_BYTES
        arrays = [size for _, size in decoded._kept.values()]
        assert decoded._bytes == sum(arrays) <= DECODED_BYTES
        assert results._bytes == sum(size for size, _ in results._kept.values()) <= RESULT_BYTES
        assert len(footers._kept) <= FOOTERS and len(reader.facts._kept) <= 8
        assert checked._ranges == sum(map(len, checked._files.values())) <= RANGES
        assert not reader.flights._open and not reader.stops
        full = {
            "indexes": len(kept) <= number,
            "footers": len(footers._kept) == FOOTERS <= number,
            "decoded": decoded._bytes > DECODED_BYTES * 7 // 8,
            "results": len(results._kept) < 8 * (number + 1),
            "checked": len(checked._files) <= number,
        }
        let_go |= {name for name, is_full in full.items() if is_full}
    assert let_go == {"indexes", "footers", "decoded", "results", "checked"}
