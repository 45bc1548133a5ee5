"""`audit`: is what is stored what agents sent. Reads every index of the tenant, and every segment in question.

A segment is sound where its bytes have the hash that its index and its name say, its rows are those of
the index, and they add up to what ingest summed when it had checked the payload hash of their frames (see
`layout.row_sums`); merges carry the sums along. A segment that no index names, and whose rows no other has, is
missing: no answer looks at it. Who writes a segment and its index anew, with names, hash
and sums that fit, is not caught by this.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from ranklog.answer.chain import ALTERED, MISSING, VERIFIED, Evidence, Fate, fates, totals
from ranklog.client.catalog import LINES_AND_POINTS
from ranklog.client.reader import Reader
from ranklog.compact.streams import all_hidden
from ranklog.compact.sums import summed_rows
from ranklog.errors import Corrupt, NotFound, RanklogError, TooLarge
from ranklog.layout import keys
from ranklog.layout.bundle import object_key
from ranklog.layout.index import SegmentIndex
from ranklog.layout.row_sums import altered_row
from ranklog.layout.rows import StreamRows
from ranklog.model.index import FrameRef
from ranklog.model.query import RunSelector
from ranklog.model.tombstone import Tombstones
from ranklog.plan.overlap import Ranges, difference, union
from ranklog.store.protocol import ObjectInfo

# Rows of one segment that are named.
_ROWS_SHOWN_MAX = 100

# Segments read at once: each is up to 128 MB, and up to 256 MB of text once it is unpacked.
_SEGMENTS_AT_ONCE = 2


@dataclass(slots=True)
class Audit:
    """`segments`: objects `{"segment", "index", "state", "why", "rows"}` of those that are not sound, or have
    no index (`index`: what it would be), and of indexes that can't be read; `rows` of them are known to be altered: `{"stream", "first_seq",
    "last_seq"}`. `rows_summed`: rows whose sums were compared; `without_index`: so many of `segments`."""

    frames: list[Fate] = field(default_factory=list)
    segments: list[dict[str, Any]] = field(default_factory=list)
    segments_read: int = 0
    bytes_read: int = 0
    rows_summed: int = 0
    without_index: int = 0

    @property
    def totals(self) -> dict[str, int]:
        """Frames by state; segments that were read, and that are not sound."""
        found = totals(self.frames)
        return {
            **found,
            "segments": self.segments_read,
            "segments_unsound": len(self.segments) - self.without_index,
            "segments_without_index": self.without_index,
            "rows_summed": self.rows_summed,
        }

    @property
    def state(self) -> str:
        """altered | missing | verified: the worst."""
        found = self.totals
        states = {item["state"] for item in self.segments}
        if found[ALTERED] or ALTERED in states:
            return ALTERED
        return MISSING if found[MISSING] or states else VERIFIED


def audit(reader: Reader, run: RunSelector | None = None, *, bytes_max: int | None = None) -> Audit:
    """All frames of a tenant, or those with rows of the launches that `run` means. Raises TooLarge where
    their segments have more than `bytes_max`."""
    launches = None
    if run is not None:
        launches = frozenset((one.run, one.launch) for one in reader.catalog.select(run))
    stored = list(reader.store.list(keys.data_prefix(reader.tenant)))  # before what names them
    listed = reader.catalog.list_time(None, None, LINES_AND_POINTS).keys
    loaded = reader.indexes.load(listed)
    result = Audit(bytes_read=loaded.bytes_read)
    result.segments += [
        _told(None, item["segment"], _state_of(item), item["reason"]) for item in loaded.failed
    ]
    tombstones = reader.tombstones.load()
    chosen = [index for index in loaded.indexes if _concerns(index, launches)]
    unnamed = _unnamed(stored, loaded.indexes)
    _refuse_many(chosen, unnamed, bytes_max)
    if unnamed:
        lost = list(_without_index(reader, launches, loaded.indexes, tombstones))
        result.segments += lost
        result.without_index = len(lost)
    evidence = _evidence(reader, chosen, tombstones, result)
    ids = None if launches is None else _streams_of(chosen, launches)
    result.frames = fates(_frames_of(loaded.indexes, ids), evidence)
    return result


def _unnamed(stored: Iterable[ObjectInfo], indexes: Iterable[SegmentIndex]) -> list[ObjectInfo]:
    """Segments that no index names: what a merge replaced is among them until it goes."""
    refs = (index.head.segment for index in indexes)
    named = {ref.key for ref in refs if ref is not None}
    return [info for info in stored if info.key not in named]


def _without_index(
    reader: Reader,
    launches: frozenset[tuple[str, str]] | None,
    indexes: Sequence[SegmentIndex],
    tombstones: Tombstones,
) -> Iterator[dict[str, Any]]:
    """Segments that have no index and rows to show that no other has, of all launches or of these. Those others
    may be in another folder: a batch that comes again in halves files the rows of a small hour elsewhere."""
    from ranklog.compact.reindex import reindex, stored_ranges

    held = stored_ranges(indexes)
    report = reindex(reader.store, reader.tenant, dry_run=True)
    for (segment, entries), index in zip(report.lacking.items(), report.written, strict=True):
        left = [(e, difference(e.ranges, held.get(e.stream_id, []))) for e in entries]
        shown = [e for e, ranges in left if difference(ranges, tombstones.hidden(e))]
        asked = [
            e for e in shown if launches is None or (e.stream.run, e.stream.launch) in launches
        ]
        if asked:
            rows = sum(entry.lines for entry in asked)
            why = f"no index names it, so that no answer has its {rows:,} rows: ranklog reindex writes one"
            yield _told(segment, index, MISSING, why)
    data = keys.data_prefix(reader.tenant)
    for key, reason in report.failed.items():
        if key.startswith(data) and launches is None:
            yield _told(key, "", ALTERED, f"no index names it, and it can't be read: {reason}")


def _refuse_many(
    chosen: Iterable[SegmentIndex], unnamed: Iterable[ObjectInfo], bytes_max: int | None
) -> None:
    refs = (index.head.segment for index in chosen)
    bytes_ = sum(ref.length for ref in refs if ref is not None)
    bytes_ += sum(info.length for info in unnamed)
    if bytes_max is not None and bytes_ > bytes_max:
        raise TooLarge(
            f"an audit of {bytes_:,} bytes of segments, limit {bytes_max:,}",
            hint="audit a run at a time, or the store itself: ranklog audit --store URL",
        )


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
        examined = list(pool.map(lambda index: _examine(reader, index, tombstones), indexes))
    deleted = {**evidence.deleted}
    for index, found in zip(indexes, examined, strict=True):
        _take(index, found, evidence, result)
        for entry in index.head.streams:
            deleted[entry.stream_id] = tombstones.hidden(entry)
    evidence.deleted = deleted
    evidence.settle()
    return evidence


def _take(index: SegmentIndex, found: _Examined, evidence: Evidence, result: Audit) -> None:
    segment = index.head.segment
    if segment is not None:
        result.segments_read += 1
        result.bytes_read += segment.length
        result.rows_summed += found.summed
    if found.state is not None:
        key = None if segment is None else segment.key
        told = _told(key, index.key, found.state, found.why, found.altered)
        result.segments.append(told)
    for stream_id, ranges in found.altered.items():
        evidence.altered.setdefault(stream_id, []).extend(ranges)
    sound = found.state is None or not found.suspect
    for entry in index.head.streams:
        if sound:
            evidence.stored.setdefault(entry.stream_id, []).extend(entry.ranges)
        elif found.state == ALTERED:
            evidence.damaged.setdefault(entry.stream_id, []).extend(entry.ranges)
        if not found.summed:
            evidence.unsummed.setdefault(entry.stream_id, []).extend(entry.ranges)


def _told(
    segment: str | None,
    index: str,
    state: str,
    why: str,
    altered: Mapping[str, Ranges] | None = None,
) -> dict[str, Any]:
    rows = [
        {"stream": stream_id, "first_seq": first, "last_seq": end - 1}
        for stream_id, ranges in (altered or {}).items()
        for first, end in ranges
    ]
    return {
        "segment": segment,
        "index": index,
        "state": state,
        "why": why,
        "rows": rows[:_ROWS_SHOWN_MAX],
    }


@dataclass(frozen=True, slots=True)
class _Examined:
    """`state` None: what was committed. `suspect`: all of its rows; else only `altered`, by stream.
    `summed`: rows whose sums were compared."""

    state: str | None = None
    why: str = ""
    suspect: bool = True
    altered: dict[str, Ranges] = field(default_factory=dict)
    summed: int = 0


def _examine(reader: Reader, index: SegmentIndex, tombstones: Tombstones) -> _Examined:
    """Whether a segment is what was committed. One of which every row was deleted may be gone."""
    head = index.head
    wrong = [] if _is_of_its_name(index) else ["the index is not the one of its name"]
    if head.segment is None:
        return _Examined(ALTERED, wrong[0]) if wrong else _Examined()
    try:
        data = reader.store.get(head.segment.key)
    except NotFound:
        if all_hidden(head, tombstones.hidden):
            return _Examined()
        return _Examined(MISSING, "the segment is gone")
    except RanklogError as error:
        return _Examined(MISSING, f"the segment was not read: {error.message}")
    if keys.hash_segment(data) != head.segment.hash or not keys.segment_is_named(
        data, head.segment.key
    ):
        wrong.append("the segment's bytes do not have their hash")
    found = _examine_rows(data, index)
    if not wrong:
        return found
    why = "; ".join([*wrong, found.why] if found.why else wrong)
    return _Examined(ALTERED, why, altered=found.altered)


def _is_of_its_name(index: SegmentIndex) -> bool:
    head, name = index.head, keys.parse_index_key(object_key(index.key))
    return not head.rows or (name.min_ts <= head.min_ts and head.max_ts <= name.max_ts)


def _examine_rows(data: bytes, index: SegmentIndex) -> _Examined:
    """The rows of a segment, beside what its index says of them."""
    try:
        rows, sums = summed_rows(index, data)
        ranges, said = _ranges_of(rows), index.row_sums
    except (pa.ArrowException, Corrupt, ValueError, KeyError, IndexError, OSError) as error:
        return _Examined(ALTERED, f"the segment can't be read: {error}")
    entries = index.head.streams
    if ranges != {at: list(entry.ranges) for at, entry in enumerate(entries) if entry.ranges}:
        return _Examined(ALTERED, "the index speaks of other rows than its segment has")
    altered: dict[str, Ranges] = {}
    for entry, was, now in zip(entries, said, sums, strict=bool(said)):
        if was != now:
            seq = altered_row(was, now, entry.ranges)
            altered[entry.stream_id] = list(entry.ranges) if seq is None else [(seq, seq + 1)]
    if altered:
        why = "rows do not add up to what ingest summed"
        return _Examined(ALTERED, why, False, altered, len(rows))
    return _Examined(summed=len(rows) if said else 0)


def _ranges_of(rows: StreamRows) -> dict[int, Ranges]:
    """Seq ranges of the rows by place of their stream."""
    order = np.lexsort((rows.seq, rows.stream))
    stream, seq = rows.stream[order].astype(np.int64), rows.seq[order]
    breaks = np.ones(len(seq), np.bool_)
    breaks[1:] = (stream[1:] != stream[:-1]) | (seq[1:] > seq[:-1] + 1)
    starts = np.flatnonzero(breaks)
    lasts = np.append(starts[1:], len(seq)) - 1
    found: dict[int, Ranges] = {}
    for place, low, high in zip(
        stream[starts].tolist(), seq[starts].tolist(), (seq[lasts] + 1).tolist(), strict=True
    ):
        found.setdefault(place, []).append((low, high))
    return {place: union(ranges) for place, ranges in found.items()}
