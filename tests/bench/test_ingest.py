"""What the bench promises of size, kept small enough for every run."""

from __future__ import annotations

from ranklog.ingest.batch import ingest_batch
from ranklog.store.memory import MemoryStore
from tests.bench.ingest import BareText, batches


def test_segments_and_indexes_are_smaller_than_zstd_of_the_bare_text() -> None:
    bare, stored = BareText(), 0
    for found in batches(262_144, 1, 262_144, bare):
        report = ingest_batch(found, store=MemoryStore(), source="s", first="1", last="2")
        stored += report.segment_bytes + report.index_bytes
    bare.finish()
    assert (
        stored < 1.02 * bare.bytes
    )  # 0.95 over the whole job of 4 M lines: dictionaries pay later
