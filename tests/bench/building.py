"""A store on disk from frames, batch by batch, and what that cost."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ranklog.ingest.batch import Record, ingest_batch
from ranklog.model.frame import Frame
from ranklog.rules.ruleset import RuleSet
from ranklog.store.open import open_store
from ranklog.store.protocol import Store
from ranklog.stream.disk import DiskStream
from ranklog.stream.frames import encode_frame
from tests.bench.corpus import corpus
from tests.bench.figures import Figure
from tests.bench.peers import PlainFiles

# Frames of one Lambda event of 6 MB, in base64.
BATCH_BYTES = int(4.5 * 2**20)


@dataclass(slots=True)
class Ingested:
    """What building the store cost."""

    lines: int = 0
    text_bytes: int = 0
    frame_bytes: int = 0
    segment_bytes: int = 0
    index_bytes: int = 0
    segments: int = 0
    cpu_s: float = 0.0
    wall_s: float = 0.0


def build(folder: Path, lines: int, batch_bytes: int, plain: PlainFiles) -> Ingested:
    """Frames of the corpus into a disk stream, and from there into a store."""
    stream = DiskStream(folder / "stream")
    for frame in plain.write(corpus(lines)):
        stream.put(f"{frame.tenant}/{frame.agent}", encode_frame(frame))
    return ingest(stream.read(), folder / "store", batch_bytes)


def ingest_frames(frames: Iterable[Frame], folder: Path) -> Ingested:
    """Frames straight into a store, without a stream or plain files."""
    records = (
        Record(encode_frame(frame), int.from_bytes(frame.ts[-8:], "little"), f"{number:09d}")
        for number, frame in enumerate(frames, 1)
    )
    return ingest(records, folder, BATCH_BYTES)


def ingest(records: Iterable[Record], folder: Path, batch_bytes: int) -> Ingested:
    """Records in batches of about so many bytes."""
    store, rules, total = open_store(str(folder), create=True), RuleSet.load(), Ingested()
    pending: list[Record] = []
    held = 0
    for record in records:
        pending.append(record)
        held += len(record.data)
        if held >= batch_bytes:
            _ingest(pending, store, rules, total)
            pending, held = [], 0
    if pending:
        _ingest(pending, store, rules, total)
    return total


def _ingest(records: list[Record], store: Store, rules: RuleSet, total: Ingested) -> None:
    cpu, wall = time.process_time(), time.perf_counter()
    first, last = records[0].sequence, records[-1].sequence
    report = ingest_batch(records, store=store, rules=rules, source="bench", first=first, last=last)
    total.cpu_s += time.process_time() - cpu
    total.wall_s += time.perf_counter() - wall
    total.lines += report.lines
    total.text_bytes += report.text_bytes
    total.frame_bytes += sum(len(one.data) for one in records)
    total.segment_bytes += report.segment_bytes
    total.index_bytes += report.index_bytes
    total.segments += len(report.committed)


def ingest_figures(total: Ingested, zstd_bytes: int) -> list[Figure]:
    """Of ingest and size, beside their marks."""
    stored = total.segment_bytes + total.index_bytes
    return [
        Figure("lines", total.lines),
        Figure("segments", total.segments),
        Figure("ingest, CPU per line", total.cpu_s / total.lines * 1e6, "us", 3.0),
        Figure("ingest, text per wall second", total.text_bytes / 1e6 / total.wall_s, "MB/s"),
        Figure("stored against zstd -3 of the text", stored / zstd_bytes, "", 1.0),
        Figure("indexes against segments", total.index_bytes / total.segment_bytes, "", 0.05),
    ]
