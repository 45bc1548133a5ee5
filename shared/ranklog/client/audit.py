"""`audit`: is what is stored what agents sent. Reads every index of the tenant, and every segment in question.

A segment is sound where its bytes have the hash that its index and its name say, and its rows are those of
the index. Who can write a segment and its index anew, both under names that fit, is not caught by this.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from ranklog.answer.chain import ALTERED, MISSING, VERIFIED, Evidence, Fate, fates, totals
from ranklog.client.catalog import LINES_AND_POINTS
from ranklog.client.reader import Reader
from ranklog.errors import Corrupt, NotFound, RanklogError
from ranklog.layout import keys, schema
from ranklog.layout.index import SegmentIndex
from ranklog.model.frame import KIND_LINE
from ranklog.model.index import FrameRef, StreamEntry
from ranklog.model.query import RunSelector
from ranklog.model.tombstone import Tombstones
from ranklog.plan.overlap import union

# Segments read at once: each is up to 128 MB of memory.
_SEGMENTS_AT_ONCE = 4


@dataclass(slots=True)
class Audit:
    """`segments`: objects `{"segment", "index", "state", "why"}` of those that are not sound, and of
    indexes that can't be read."""

    frames: list[Fate] = field(default_factory=list)
    segments: list[dict[str, Any]] = field(default_factory=list)
    segments_read: int = 0
    bytes_read: int = 0

    @property
    def totals(self) -> dict[str, int]:
        """Frames by state; segments that were read, and that are not sound."""
        found = totals(self.frames)
        return {
            **found,
            "segments": self.segments_read,
            "segments_unsound": len(self.segments),
        }

    @property
    def state(self) -> str:
        """altered | missing | verified: the worst."""
        found = self.totals
        states = {item["state"] for item in self.segments}
        if found[ALTERED] or ALTERED in states:
            return ALTERED
        return MISSING if found[MISSING] or states else VERIFIED


def audit(reader: Reader, run: RunSelector | None = None) -> Audit:
    """All frames of a tenant, or those with rows of the launches that `run` means."""
    launches = None
    if run is not None:
        launches = frozenset((one.run, one.launch) for one in reader.catalog.select(run))
    listed = reader.catalog.list_time(None, None, LINES_AND_POINTS).keys
    loaded = reader.indexes.load(listed)
    result = Audit(bytes_read=loaded.bytes_read)
    result.segments += [
        {"segment": None, "index": item["segment"], "state": _state_of(item), "why": item["reason"]}
        for item in loaded.failed
    ]
    tombstones = reader.tombstones.load()
    chosen = [index for index in loaded.indexes if _concerns(index, launches)]
    evidence = _evidence(reader, chosen, tombstones, result)
    ids = None if launches is None else _streams_of(chosen, launches)
    result.frames = fates(_frames_of(loaded.indexes, ids), evidence)
    return result


def _state_of(item: dict[str, str]) -> str:
    return MISSING if "gone" in item["reason"] else ALTERED


def _concerns(index: SegmentIndex, launches: frozenset[tuple[str, str]] | None) -> bool:
    if launches is None:
        return True
    return any((e.stream.run, e.stream.launch) in launches for e in index.head.streams)


def _streams_of(
    indexes: Iterable[SegmentIndex], launches: frozenset[tuple[str, str]]
) -> frozenset[str]:
    return frozenset(
        entry.stream_id
        for index in indexes
        for entry in index.head.streams
        if (entry.stream.run, entry.stream.launch) in launches
    )


def _frames_of(indexes: Iterable[SegmentIndex], ids: frozenset[str] | None) -> list[FrameRef]:
    """Frames of all agents, or of those that sent rows of these streams."""
    frames = [frame for index in indexes for frame in index.head.frames]
    if ids is None:
        return frames
    agents = {frame.agent for frame in frames if any(part[0] in ids for part in frame.parts or ())}
    return [frame for frame in frames if frame.agent in agents]


# --- segments -----------------------------------------------------------------------------------
def _evidence(
    reader: Reader, indexes: Sequence[SegmentIndex], tombstones: Tombstones, result: Audit
) -> Evidence:
    """Read every segment; what is stored of each stream, in sound ones and in others."""
    evidence = Evidence(deleted=dict(tombstones.streams))
    for agent, first, end in tombstones.frames:
        evidence.gone.setdefault(agent, []).append((first, end))
    with ThreadPoolExecutor(_SEGMENTS_AT_ONCE, thread_name_prefix="ranklog-audit") as pool:
        wrong = list(pool.map(lambda index: _examine(reader, index), indexes))
    deleted = {**evidence.deleted}
    for index, found in zip(indexes, wrong, strict=True):
        segment = index.head.segment
        if segment is not None:
            result.segments_read += 1
            result.bytes_read += segment.length
        if found is not None:
            key = None if segment is None else segment.key
            state, why = found
            result.segments.append({"segment": key, "index": index.key, "state": state, "why": why})
        place = evidence.stored if found is None else evidence.damaged
        for entry in index.head.streams:
            deleted[entry.stream_id] = tombstones.hidden(entry)
            if found is None or found[0] == ALTERED:
                place.setdefault(entry.stream_id, []).extend(entry.ranges)
    evidence.deleted = deleted
    evidence.settle()
    return evidence


def _examine(reader: Reader, index: SegmentIndex) -> tuple[str, str] | None:
    """(state, why) where a segment is not what was committed, None where it is."""
    head, name = index.head, keys.parse_index_key(index.key)
    if head.rows and not (name.min_ts <= head.min_ts and head.max_ts <= name.max_ts):
        return ALTERED, "the index is not the one of its name"
    if head.segment is None:
        return None
    try:
        data = reader.store.get(head.segment.key)
    except NotFound:
        return MISSING, "the segment is gone"
    except RanklogError as error:
        return MISSING, f"the segment was not read: {error.message}"
    digest = keys.hash_segment(data)
    if digest != head.segment.hash or not keys.segment_is_named(data, head.segment.key):
        return ALTERED, "the segment's bytes do not have their hash"
    try:
        same = head.kind != KIND_LINE or _ranges_of(data, head.streams) == _said(head.streams)
    except (Corrupt, ValueError, KeyError, OSError) as error:
        return ALTERED, f"the segment can't be read: {error}"
    return None if same else (ALTERED, "the index speaks of other rows than its segment has")


def _said(entries: Sequence[StreamEntry]) -> dict[int, list[tuple[int, int]]]:
    return {at: list(entry.ranges) for at, entry in enumerate(entries) if entry.ranges}


def _ranges_of(data: bytes, entries: Sequence[StreamEntry]) -> dict[int, list[tuple[int, int]]]:
    """Seq ranges of the rows by position of their stream."""
    table = pq.read_table(io.BytesIO(data), columns=[schema.STREAM, schema.SEQ])
    stream, seq = (table.column(name).to_numpy() for name in (schema.STREAM, schema.SEQ))
    order = np.lexsort((seq, stream))
    stream, seq = stream[order].astype(np.int64), seq[order]
    breaks = np.ones(len(seq), np.bool_)
    breaks[1:] = (stream[1:] != stream[:-1]) | (seq[1:] > seq[:-1] + 1)
    starts = np.flatnonzero(breaks)
    lasts = np.append(starts[1:], len(seq)) - 1
    found: dict[int, list[tuple[int, int]]] = {}
    for place, low, high in zip(
        stream[starts].tolist(), seq[starts].tolist(), (seq[lasts] + 1).tolist(), strict=True
    ):
        found.setdefault(place, []).append((low, high))
    return {place: union(ranges) for place, ranges in found.items() if place < len(entries)}
