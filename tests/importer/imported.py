"""Import into memory and look at the frames: what was stored of each file, line by line."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranklog.importer import import_paths, importing
from ranklog.importer.report import ImportReport
from ranklog.ingest.batch import IngestReport
from ranklog.model.frame import NO_GROUP, NO_LF, STREAM_RANK, CallSite, Fence, Frame
from ranklog.model.record import Record
from ranklog.model.stream import Stream
from ranklog.store.memory import MemoryStore
from ranklog.stream.frames import decode_frame

# Later than any file the tests write, so that a file is as old as it says: 2100-01-01T00:00:00Z
NOW_NS = 4_102_444_800 * 10**9


@dataclass
class Row:
    seq: int
    text: bytes
    ts_ns: int
    level: int
    flags: int
    body: bytes
    rank: int | None  # None: the stream's
    group: int | None  # seq of the record's first line
    site: CallSite | None
    raw: bytes | None = None


@dataclass
class Stored:
    """All that was stored of one stream."""

    stream: Stream
    rows: list[Row] = field(default_factory=list)
    fences: list[Fence] = field(default_factory=list)

    @property
    def content(self) -> bytes:
        parts = []
        for row in self.rows:
            parts.append(row.text if row.raw is None else row.raw)
            parts.append(b"" if row.flags & NO_LF else b"\n")
        return b"".join(parts)


class Imports:
    """Imports into one store. Frames are kept instead of ingested."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.store = MemoryStore()
        self.frames: list[Frame] = []
        self.crash = False
        monkeypatch.setattr(importing, "ingest_batch", self._ingest)

    def _ingest(self, records: Sequence[Record], **_: Any) -> IngestReport:
        self.frames += [decode_frame(record.data) for record in records]
        if self.crash:
            raise KeyboardInterrupt
        return IngestReport()

    def run(self, *paths: Path | str, **options: Any) -> ImportReport:
        options = {"tenant": "t", "run": "r", "now_ns": NOW_NS} | options
        return import_paths([str(path) for path in paths], store=self.store, **options)

    @property
    def streams(self) -> list[Stored]:
        """Streams in the order of their first frame; rows in order of seq, each seq once."""
        found: dict[str, Stored] = {}
        for frame in self.frames:
            for entry in frame.streams:
                stored = found.setdefault(entry.stream.stream_id, Stored(entry.stream))
                stored.fences = list(entry.fences) or stored.fences
                stored.rows += _rows(frame)
        for stored in found.values():
            stored.rows = [row for _, row in sorted({row.seq: row for row in stored.rows}.items())]
            assert [row.seq for row in stored.rows] == list(range(len(stored.rows)))
        return list(found.values())

    def by_channel(self) -> dict[str, Stored]:
        return {stored.stream.channel: stored for stored in self.streams}

    def only(self) -> Stored:
        (stored,) = self.streams
        return stored


def _rows(frame: Frame) -> list[Row]:
    (entry,) = frame.streams
    columns = {
        "ts": np.frombuffer(frame.ts, "<i8"),
        "level": np.frombuffer(frame.level, "<i2"),
        "site": np.frombuffer(frame.site, "<u4"),
        "body_at": np.frombuffer(frame.body_at, "<u4"),
        "flags": np.frombuffer(frame.flags, "<u2"),
        "group": np.frombuffer(frame.group, "<u4"),
        "rank": np.frombuffer(frame.rank, "<i4"),
        "length": np.frombuffer(frame.text_length, "<u4"),
    }
    values = {name: column.tolist() for name, column in columns.items()}
    raw, at = {}, 0
    for row, length in zip(
        np.frombuffer(frame.raw_rows, "<u4"), np.frombuffer(frame.raw_length, "<u4"), strict=True
    ):
        raw[int(row)] = frame.raw[at : at + int(length)]
        at += int(length)
    rows, at = [], 0
    for i in range(frame.rows):
        text = frame.text[at : at + values["length"][i]]
        at += values["length"][i]
        group, rank, site = values["group"][i], values["rank"][i], values["site"][i]
        seq = entry.first_seq + i
        rows.append(
            Row(
                seq,
                text,
                values["ts"][i],
                values["level"][i],
                values["flags"][i],
                text[values["body_at"][i] :],
                None if rank == STREAM_RANK else rank,
                None if group == NO_GROUP else seq - group,
                frame.sites[site - 1] if site else None,
                raw.get(i),
            )
        )
    return rows


def ns(seconds: float, fraction_ns: int = 0) -> int:
    return int(seconds) * 10**9 + fraction_ns


__all__ = ["NOW_NS", "Imports", "Row", "Stored", "ns", "struct"]
