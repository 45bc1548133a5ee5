"""The head section of an index: `IndexHead` as one msgpack map of columns.

Columns, because a segment has hundreds of streams and dozens of row groups that differ in few
fields: a column whose values are all equal is stored once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ranklog import limits
from ranklog.layout.drops import drops_from_columns, drops_to_columns
from ranklog.layout.frame_refs import contested_from_map, contested_to_map, frames_from_head
from ranklog.layout.packed import pack_column, pack_pairs, unpack_column, unpack_pairs
from ranklog.model.frame import Drop, Fence, StreamEnd
from ranklog.model.index import (
    Bounds,
    FrameRef,
    IndexHead,
    Pass,
    RowGroup,
    SegmentRef,
    StreamEntry,
)
from ranklog.model.stream import Stream

VERSION_APART = 5  # frames lie in a section of their own
_STREAM_FIELDS = tuple(Stream.__slots__)
_PASS_FIELDS = Pass._fields
# Indexes of a run name the same streams again and again.
_stream = lru_cache(limits.STREAMS_KNOWN_MAX)(Stream)
_ENTRY_FIELDS = ("lines", "text_bytes", "min_ts", "max_ts", "max_iteration")


def head_to_map(head: IndexHead) -> dict[str, Any]:
    """What msgpack writes; frames are not in it."""
    segment = head.segment
    return {
        "kind": head.kind,
        "segment": segment and [segment.key, segment.length, segment.hash, segment.etag],
        "rows": head.rows,
        "ts": [head.min_ts, head.max_ts],
        "bytes": head.text_bytes,
        "streams": _streams_to_map(head.streams),
        "groups": _groups_to_map(head.row_groups, len(head.streams)),
        "columns": list(head.columns),
        "overflow": list(head.overflow),
        **contested_to_map(head.contested),
        "replaces": list(head.replaces),
        "bloom": head.bloom_key,
        "envelopes": None if head.envelopes is None else list(head.envelopes),
        "odd_case": head.odd_case,
        "extra": head.extra,
    }


def head_from_map(data: dict[str, Any], version: int, frames: Sequence[FrameRef] = ()) -> IndexHead:
    """Inverse of `head_to_map`; heads of before version 5 have their frames themselves.

    Raises KeyError, TypeError, ValueError, IndexError on damage.
    """
    segment, envelopes = data["segment"], data["envelopes"]
    return IndexHead(
        version=version,
        kind=data["kind"],
        segment=None if segment is None else SegmentRef(*segment),
        rows=data["rows"],
        min_ts=data["ts"][0],
        max_ts=data["ts"][1],
        text_bytes=data["bytes"],
        streams=_streams_from_map(data["streams"], version),
        row_groups=_groups_from_map(data["groups"], version),
        columns=tuple(data["columns"]),
        overflow=tuple(data["overflow"]),
        frames=frames_from_head(data) if version < VERSION_APART else frames,
        contested=contested_from_map(data.get("contested")),
        replaces=tuple(data["replaces"]),
        bloom_key=data["bloom"],
        envelopes=None if envelopes is None else tuple(envelopes),
        odd_case=data["odd_case"],
        extra=data["extra"],
    )


# --- streams ------------------------------------------------------------------------------------
def _streams_to_map(entries: Sequence[StreamEntry]) -> dict[str, Any]:
    columns = {
        name: pack_column([getattr(e.stream, name) for e in entries]) for name in _STREAM_FIELDS
    }
    alive = [[i, e.alive_ns] for i, e in enumerate(entries) if e.alive_ns is not None]
    return {
        "n": len(entries),
        "ids": b"".join(bytes.fromhex(e.stream_id) for e in entries),
        "stream": columns,
        "entry": {name: pack_column([getattr(e, name) for e in entries]) for name in _ENTRY_FIELDS},
        "ranges": pack_column([_flat(e.ranges) for e in entries]),
        "ranks": pack_column([pack_pairs(e.ranks) for e in entries]),
        # Sparse: most streams have none of these in a batch.
        "fences": _fences_to_columns(entries),
        "drops": drops_to_columns(entries),
        "ends": [[i, e.end.end_seq, e.end.exit_code] for i, e in enumerate(entries) if e.end],
        **({"alive": alive} if alive else {}),
        **_passes_to_map(entries),
    }


def _fences_to_columns(entries: Sequence[StreamEntry]) -> list[Any]:
    """Stream, hour and ranges of each fence; [] where there is none."""
    found = [(i, fence) for i, entry in enumerate(entries) for fence in entry.fences]
    if not found:
        return []
    return [
        len(found),
        pack_column([i for i, _ in found]),
        pack_column([fence.hour for _, fence in found]),
        pack_column([_flat(fence.ranges) for _, fence in found]),
    ]


def _fences_from_map(data: Sequence[Any], version: int) -> dict[int, tuple[Fence, ...]]:
    if version < VERSION_APART:
        return {i: tuple(Fence(h, _pairs(r)) for h, r in items) for i, items in data}
    found: dict[int, tuple[Fence, ...]] = {}
    if data:
        count, *columns = data
        for i, hour, ranges in zip(
            *(unpack_column(column, count) for column in columns), strict=True
        ):
            found[i] = (*found.get(i, ()), Fence(hour, _pairs(ranges)))
    return found


def _drops_from_map(data: Sequence[Any], version: int) -> dict[int, tuple[Drop, ...]]:
    if version < VERSION_APART:
        return {i: tuple(Drop(n, reason) for n, reason in items) for i, items in data}
    return drops_from_columns(data)


def _passes_to_map(entries: Sequence[StreamEntry]) -> dict[str, Any]:
    """Passes of all streams as columns, `of` being the stream of each; nothing where there is none."""
    found = [(i, item) for i, entry in enumerate(entries) for item in entry.passes]
    if not found:
        return {}
    columns = [pack_column([getattr(item, name) for _, item in found]) for name in _PASS_FIELDS]
    return {"passes": [len(found), pack_column([i for i, _ in found]), *columns]}


def _passes_from_map(data: Sequence[Any], streams: int) -> list[tuple[Pass, ...]]:
    if not data:  # indexes of before have none
        return [()] * streams
    count, of, *columns = data
    found: dict[int, list[Pass]] = {}
    values = [unpack_column(column, count) for column in columns]
    passes = map(Pass._make, zip(*values, strict=True))
    places = unpack_column(of, count)
    if count == streams and list(places) == list(range(streams)):
        return [(one,) for one in passes]  # what it nearly always is
    for i, item in zip(places, passes, strict=True):
        found.setdefault(i, []).append(item)
    return [tuple(found.get(i, ())) for i in range(streams)]


def _streams_from_map(data: dict[str, Any], version: int) -> tuple[StreamEntry, ...]:
    count, ids = data["n"], data["ids"].hex()
    # map over columns: a planner reads hundreds of indexes of hundreds of streams
    streams = map(_stream, *(unpack_column(data["stream"][name], count) for name in _STREAM_FIELDS))
    entry = {name: unpack_column(data["entry"][name], count) for name in _ENTRY_FIELDS}
    ranges = map(_pairs, unpack_column(data["ranges"], count))
    ranks = map(_pairs if version == 1 else unpack_pairs, unpack_column(data["ranks"], count))
    fences = _fences_from_map(data["fences"], version)
    drops = _drops_from_map(data["drops"], version)
    alive = dict(data.get("alive", ()))  # indexes of before have none
    ends = {i: StreamEnd(end, code) for i, end, code in data["ends"]}
    return tuple(
        map(
            StreamEntry,
            streams,
            [ids[at : at + 32] for at in range(0, 32 * count, 32)],
            entry["lines"],
            entry["text_bytes"],
            entry["min_ts"],
            entry["max_ts"],
            ranges,
            entry["max_iteration"],
            ranks,
            [fences.get(i, ()) for i in range(count)],
            [drops.get(i, ()) for i in range(count)],
            [ends.get(i) for i in range(count)],
            [alive.get(i) for i in range(count)],
            _passes_from_map(data.get("passes", ()), count),
        )
    )


def _flat(pairs: Sequence[tuple[int, int]]) -> list[int]:
    return [number for pair in pairs for number in pair]


def _pairs(flat: Sequence[int]) -> tuple[tuple[int, int], ...]:
    if not flat:
        return ()
    if len(flat) == 2:  # what it nearly always is
        return ((flat[0], flat[1]),)
    return tuple(zip(flat[::2], flat[1::2], strict=True))


# --- row groups ---------------------------------------------------------------------------------
def _groups_to_map(groups: Sequence[RowGroup], streams: int) -> dict[str, Any]:
    columns = list(dict.fromkeys(name for group in groups for name in group.chunks))
    bounds = list(dict.fromkeys(name for group in groups for name in group.bounds))
    return {
        "n": len(groups),
        "first": [group.first_row for group in groups],
        "rows": [group.rows for group in groups],
        "columns": columns,
        "chunks": [_chunks_to_list([group.chunks[name] for name in columns]) for group in groups],
        "bounds": {
            name: [_bounds_to_list(group.bounds.get(name)) for group in groups] for name in bounds
        },
        # A bit per stream: 64 bytes for 512 streams.
        "streams": [
            sum(1 << s for s in group.streams).to_bytes((streams + 7) // 8, "little")
            for group in groups
        ],
        "runs": [None if group.runs is None else " ".join(sorted(group.runs)) for group in groups],
        "hex": [group.hex_runs for group in groups],
        "bloom": _flat([group.bloom for group in groups]),
    }


def _groups_from_map(data: dict[str, Any], version: int) -> tuple[RowGroup, ...]:
    columns, blooms = data["columns"], _pairs(data["bloom"])
    chunks = [_chunks_from_list(chunk, version, len(columns)) for chunk in data["chunks"]]
    return tuple(
        RowGroup(
            first_row=data["first"][i],
            rows=data["rows"][i],
            chunks=dict(zip(columns, chunks[i], strict=True)),
            bounds={
                name: Bounds(*values[i])
                for name, values in data["bounds"].items()
                if values[i] is not None
            },
            streams=_bits(data["streams"][i]),
            runs=None if data["runs"][i] is None else frozenset(data["runs"][i].split()),
            hex_runs=data["hex"][i],
            bloom=blooms[i],
        )
        for i in range(data["n"])
    )


def _chunks_to_list(chunks: Sequence[tuple[int, int]]) -> list[int]:
    """Length of each, then bytes between it and the chunk before, without the zeros at the end: as a
    rule there is something before the first chunk and nothing between the others."""
    gaps, end = [], 0
    for offset, length in chunks:
        gaps.append(offset - end)
        end = offset + length
    while gaps and not gaps[-1]:
        gaps.pop()
    return [*(length for _, length in chunks), *gaps]


def _chunks_from_list(flat: Sequence[int], version: int, count: int) -> Sequence[tuple[int, int]]:
    """Inverse of `_chunks_to_list`, and of what earlier versions wrote, for so many columns."""
    if version == 1:
        return _pairs(flat)
    if version < VERSION_APART:
        gaps, lengths = flat[::2], flat[1::2]
    else:
        lengths, gaps = flat[:count], [*flat[count:], *[0] * (2 * count - len(flat))]
    chunks, end = [], 0
    for gap, length in zip(gaps, lengths, strict=True):
        chunks.append((end + gap, length))
        end += gap + length
    return chunks


def _bounds_to_list(bounds: Bounds | None) -> list[Any] | None:
    return None if bounds is None else [bounds.low, bounds.high, bounds.has_null, bounds.has_nan]


_BITS_OF = tuple(tuple(bit for bit in range(8) if value >> bit & 1) for value in range(256))


def _bits(data: bytes) -> frozenset[int]:
    return frozenset(
        [at * 8 + bit for at, value in enumerate(data) if value for bit in _BITS_OF[value]]
    )
