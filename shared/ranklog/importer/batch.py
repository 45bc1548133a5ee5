"""Frames of many files, gathered so that segments are large: begin, ingest, done.

The rows of a batch are committed before its files are recorded as stored. What a batch is called
derives from its frames, so that the same frames are committed once.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from ranklog.errors import Corrupt
from ranklog.importer.records import Ledger
from ranklog.importer.rows import Encoded
from ranklog.ingest.batch import IngestReport, Record
from ranklog.layout.import_record import Known

BATCH_ROWS = 500_000
BATCH_TEXT_BYTES = 64 << 20
# Many empty files make frames without rows.
BATCH_FRAMES = 4_096


class Ingest(Protocol):
    """Commits the rows of frames, once. `ranklog.ingest.batch.ingest_batch` bound to a store."""

    def __call__(
        self, records: Sequence[Record], source: str, first: str, last: str
    ) -> IngestReport: ...


class Batch:
    """Frames that wait to be ingested together, and what is known of their files afterwards."""

    def __init__(self, ingest: Ingest, ledger: Ledger, now_ns: int) -> None:
        self._ingest = ingest
        self._ledger = ledger
        self._now_ns = now_ns
        self.refused: Counter[str] = Counter()  # rows by stream that retention refused
        self._clear()

    def _clear(self) -> None:
        self._records: list[Record] = []
        self._files: dict[str, Known] = {}
        self._rows = 0
        self._text_bytes = 0

    def add(self, frames: Sequence[Encoded], file: Known) -> None:
        """Take the frames that bring a file to this state; commit when there are enough."""
        for frame in frames:
            self._records.append(Record(frame.data, self._now_ns, f"{len(self._records):08d}"))
            self._rows += frame.rows
            self._text_bytes += frame.text_bytes
        self._files[file.stream.stream_id] = file
        if (
            self._rows >= BATCH_ROWS
            or self._text_bytes >= BATCH_TEXT_BYTES
            or len(self._records) >= BATCH_FRAMES
        ):
            self.flush()

    def flush(self) -> None:
        """Commit what waits."""
        if not self._records:
            return
        digest = hashlib.blake2b(digest_size=12)
        for record in self._records:
            digest.update(record.data)
        files = list(self._files.values())
        self._ledger.begin(files, self._now_ns)
        report = self._ingest(
            self._records,
            f"import-{digest.hexdigest()}",
            self._records[0].sequence,
            self._records[-1].sequence,
        )
        if report.bad:
            raise Corrupt(
                f"ingest set aside {len(report.bad)} frames: {report.bad[0].reason}",
                hint=f"kept as {report.bad[0].key}; nothing of this batch is recorded as imported",
            )
        self._ledger.done(files, self._now_ns)
        self.refused.update(report.refused_of)
        self._clear()
