"""A file of points on its way in: what its text has beyond what is stored, as frames of points."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from ranklog.importer.batch import Batch
from ranklog.importer.fences import Hours
from ranklog.importer.lines import split_chunks
from ranklog.importer.point_text import HEAD, read_points
from ranklog.importer.records import hash_bytes
from ranklog.importer.rows import Encoded, FrameChain
from ranklog.layout.import_record import Known
from ranklog.limits import FRAME_BYTES_MAX
from ranklog.model.frame import NO_ITERATION, STREAM_RANK, Fence, StreamEnd
from ranklog.model.point import canonical_json
from ranklog.stream.point_batch import PointBatch
from ranklog.stream.point_builder import PointBuilder, summary_bytes

# Of one frame; a value takes some tens of bytes at most, a summary is counted.
VALUES_MAX = 65_536
_SUMMARY_SHARE = FRAME_BYTES_MAX // 2


def is_points(text: bytes) -> bool:
    """Whether a file's text is one of points."""
    return text.startswith(HEAD)


def folder_dims(relative: str, has_rank: bool) -> dict[str, str]:
    """The folder below the one that is imported tells series apart, unless it tells the rank."""
    folder = str(PurePosixPath(relative).parent)
    return {} if has_rank or folder in (".", "") else {"folder": folder}


class PointFramer(FrameChain):
    """Frames of records of points."""

    def frames(self, records: Sequence[dict[str, Any]]) -> Iterator[Encoded]:
        """One or more frames that hold all records."""
        for part in _cuts(records):
            builder = self._builder()
            builder.extend(self._stream, self.next_seq, batch_of(part))
            self.next_seq += len(part)
            yield self._count(builder)

    def closing(self, fences: tuple[Fence, ...]) -> Encoded:
        """A frame without rows: what the stream's hours hold, and where it ends."""
        builder = self._builder()
        for fence in fences:
            builder.fence(self._stream, self.next_seq, fence)
        builder.end(self._stream, StreamEnd(self.next_seq))
        return self._count(builder)

    def _builder(self) -> PointBuilder:
        return PointBuilder(self._stream.tenant, self._agent, self._number, self._previous)

    def _count(self, builder: PointBuilder) -> Encoded:
        frame = builder.build()
        data = self._encode(frame)
        return Encoded(data, frame.rows, len(data))


def _cuts(records: Sequence[dict[str, Any]]) -> Iterator[Sequence[dict[str, Any]]]:
    """Runs of records of about VALUES_MAX values, each record whole."""
    start = values = size = 0
    for at, record in enumerate(records):
        found = record["values"].values()
        values += len(found)
        size += sum(summary_bytes(value) for value in found if isinstance(value, dict))
        if values >= VALUES_MAX or size >= _SUMMARY_SHARE:
            yield records[start : at + 1]
            start, values, size = at + 1, 0, 0
    if start < len(records):
        yield records[start:]


def batch_of(records: Sequence[dict[str, Any]]) -> PointBatch:
    """Consecutive records of one stream as columns."""
    keys: dict[tuple[str, tuple[str, ...]], int] = {}
    sets, sizes = [], []
    values, missing, summaries = array("d"), [], []
    for record in records:
        found = record["values"]
        key = (canonical_json(record["dims"]), tuple(found))
        sets.append(keys.setdefault(key, len(keys)))
        sizes.append(len(found))
        for value in found.values():
            if value is None:
                missing.append(len(values))
            elif isinstance(value, dict):
                summaries.append((len(values), value))
            values.append(value if isinstance(value, (int, float)) else float("nan"))
    iterations = [r["iteration"] for r in records]
    count = len(records)
    return PointBatch(
        ts=array("q", [record["ts_ns"] for record in records]),
        rank=array("i", [STREAM_RANK]) * count,
        iteration=array("q", [NO_ITERATION if i is None else i for i in iterations]),
        set=sets,
        sets={number: key for key, number in keys.items()},
        context=[0] * count,
        contexts={0: None},
        size=sizes,
        values=values,
        missing=missing,
        summaries=summaries,
    )


def store_points(
    blocks: Iterator[bytes],
    known: Known,
    is_new: bool,
    dims: dict[str, str],
    batch: Batch,
    told: Callable[[Known, int], None],
) -> None:
    """Frames of what comes after `known.bytes` of the text go to the batch; `told` hears how far it is,
    and how many records are new."""
    running, skip = hash_bytes(), known.bytes
    framer, hours = PointFramer(known.stream, known.rows), Hours(known.fences)
    stored = 0
    for data in split_chunks(_hashed(blocks, running, skip)):
        records = list(read_points(data))
        for record in records:
            record["dims"] = record["dims"] or dims
        first = framer.next_seq
        frames = list(framer.frames(records))
        if records:
            hours.add(first, np.array([record["ts_ns"] for record in records], np.int64))
            known = replace(known, last_ts_ns=records[-1]["ts_ns"])
        running.update(data)
        stored += len(records)
        known = replace(
            known,
            bytes=known.bytes + len(data),
            hash=running.hexdigest(),
            rows=framer.next_seq,
            lines=framer.next_seq,
            fences=hours.record(),
        )
        told(known, stored)
        batch.add(frames, known)
    if stored or is_new:
        batch.add([framer.closing(hours.fences())], replace(known, hash=running.hexdigest()))
    told(known, stored)


def _hashed(blocks: Iterator[bytes], running: Any, size: int) -> Iterator[bytes]:
    """What comes after the first `size` bytes; those are hashed."""
    for block in blocks:
        if size:
            before, block = block[:size], block[size:]
            running.update(before)
            size -= len(before)
        if block:
            yield block
