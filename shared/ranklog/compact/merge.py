"""One merge: indexes and their segments to one object of indexes that replaces them, and its segments.

The order of writing is that of ingest: segments, then one PUT that is the commit. What is cut short
leaves segments that no index names, and what was there before is still the answer.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from ranklog.compact.contents import Contents
from ranklog.compact.contest import Contest
from ranklog.compact.lines import read_lines
from ranklog.compact.points import read_points
from ranklog.compact.streams import Described, Hidden, Streams, all_hidden, rows_that_count
from ranklog.compact.sums import unlike_their_sums
from ranklog.errors import Corrupt, NotFound
from ranklog.ingest.commit import Place, is_stale, put_index, put_segment
from ranklog.layout import keys
from ranklog.layout.build import (
    Beside,
    BuiltSegment,
    StreamNotes,
    build_notes,
    build_segment,
    find_facts,
)
from ranklog.layout.bundle import COMPACTED, encode_bundle, member_key
from ranklog.layout.index import SegmentIndex
from ranklog.layout.point_build import build_point_notes, build_points
from ranklog.layout.point_rows import PointRows
from ranklog.layout.rows import I64, Rows, StreamRows
from ranklog.limits import COMPACT_SPLIT_BYTES_MIN
from ranklog.model.frame import KIND_POINT
from ranklog.model.index import Contested, FrameRef
from ranklog.store.protocol import Store


@dataclass(slots=True)
class Merged:
    """`key` of the new object; `committed` is False where somebody else had done the same."""

    key: str
    replaces: tuple[str, ...]
    committed: bool
    segments: list[str] = field(default_factory=list)
    rows: int = 0
    hidden: int = 0  # rows that were left out: deleted, or there twice
    failed: dict[str, str] = field(default_factory=dict)  # index -> why its segment can't be read


@dataclass(frozen=True, slots=True)
class Material:
    """Rows of the merge, and how segments and indexes are made of them."""

    rows: StreamRows
    streams: Streams
    build: Callable[[I64, Beside], BuiltSegment]
    notes: Callable[[Beside, tuple[int, int]], bytes]


def merge(
    store: Store, contents: Contents, chosen: Sequence[SegmentIndex], hidden: Hidden
) -> Merged:
    """Commit what stands for these indexes, but for those whose segment is damaged or gone: they stay
    as they are. Raises Corrupt where nothing is left to merge, and what the store raises."""
    chosen, segments, failed = _segments(store, chosen, hidden)
    made = material(contents.kind, chosen, segments, hidden)
    if odd := unlike_their_sums(made.rows, made.streams, chosen):
        failed |= {index.key: "its segment has other rows than it was given" for index in odd}
        chosen, segments = _without(odd, chosen, segments, failed)
        made = material(contents.kind, chosen, segments, hidden)
    contest = Contest(made.streams)
    counted = rows_that_count(made.rows, made.streams.hidden, contest.losers(made.rows))
    stored = sum(len(data) for data in segments if data is not None)
    parts = split_runs(made.rows, counted, stored)
    replaces = _replaces(contents, chosen)
    place = contents.folder.place(COMPACTED, _digest(chosen), str(len(chosen)))
    key = place.index_key(contents.kind, _bounds(contents.names(chosen)))
    besides = _besides(made, parts, replaces, contest.contested())
    merged = Merged(key, replaces, False, rows=len(counted), failed=failed)
    merged.hidden = len(made.rows) - len(counted)
    data = _put_segments(store, place, made, parts, besides, merged)
    merged.committed = put_index(store, key, data)
    return merged


def _without(
    odd: Sequence[SegmentIndex],
    chosen: Sequence[SegmentIndex],
    segments: Sequence[bytes | None],
    failed: dict[str, str],
) -> tuple[list[SegmentIndex], list[bytes | None]]:
    """The others: what was altered stays where it is, for who audits. Raises Corrupt where none is left."""
    kept = [at for at, index in enumerate(chosen) if index not in odd]
    if len(kept) < 2:
        raise Corrupt("; ".join(failed.values()), hint="ranklog audit names the rows")
    return [chosen[at] for at in kept], [segments[at] for at in kept]


def _segments(
    store: Store, chosen: Sequence[SegmentIndex], hidden: Hidden
) -> tuple[list[SegmentIndex], list[bytes | None], dict[str, str]]:
    """What can be read of these, its bytes (None: an index without a segment, or of which all rows are
    hidden and retention removed it), and what can't."""
    kept: list[SegmentIndex] = []
    found: list[bytes | None] = []
    failed: dict[str, str] = {}
    for index in chosen:
        try:
            data = read_segment(store, index)
        except (Corrupt, NotFound) as error:
            if not (isinstance(error, NotFound) and all_hidden(index.head, hidden)):
                failed[index.key] = error.message
                continue
            data = None
        kept.append(index)
        found.append(data)
    if not kept or (failed and len(kept) < 2):
        raise Corrupt("; ".join(failed.values()), hint="ranklog audit names what is lost")
    return kept, found, failed


def read_segment(store: Store, index: SegmentIndex) -> bytes | None:
    """The bytes that the index commits. Raises Corrupt, NotFound."""
    segment = index.head.segment
    if segment is None:
        return None
    data = store.get(segment.key)
    if not keys.segment_is_named(data, segment.key):
        raise Corrupt(f"damaged segment: {segment.key}")
    return data


def material(
    kind: str, indexes: Sequence[Described], segments: Sequence[bytes | None], hidden: Hidden
) -> Material:
    """Rows of the segments. Raises Corrupt."""
    try:
        if kind == KIND_POINT:
            return _of_points(*read_points(indexes, segments, hidden))
        return _of_lines(*read_lines(indexes, segments, hidden))
    except (pa.ArrowException, IndexError, KeyError) as error:
        names = ", ".join(index.key for index in indexes)
        raise Corrupt(f"a segment can't be read: {error} (of {names:.200})") from error


def _of_lines(rows: Rows, streams: Streams) -> Material:
    facts = find_facts(rows) if len(rows) else None

    def build(chosen: I64, beside: Beside) -> BuiltSegment:
        assert facts is not None
        return build_segment(rows, facts, chosen, rows.metadata, beside)

    return Material(rows, streams, build, lambda *given: build_notes(rows, *given))


def _of_points(rows: PointRows, streams: Streams) -> Material:
    return Material(
        rows,
        streams,
        lambda chosen, beside: build_points(rows, chosen, beside),
        lambda *given: build_point_notes(rows, *given),
    )


def split_runs(rows: StreamRows, chosen: I64, stored: int) -> list[I64]:
    """Rows by segment; past COMPACT_SPLIT_BYTES_MIN (by their share of `stored`) broken at runs."""
    if not len(chosen):
        return []
    runs = sorted({(stream.run, stream.launch) for stream in rows.streams})
    number = {run: i for i, run in enumerate(runs)}
    run_of = np.array([number[stream.run, stream.launch] for stream in rows.streams])
    run = run_of[rows.stream[chosen]]
    sizes = (rows.offsets[chosen + 1] - rows.offsets[chosen]) + 1
    of_run = np.bincount(run, weights=sizes, minlength=len(runs))
    share = stored / of_run.sum()
    part_of, part, size = np.zeros(len(runs), np.int64), 0, 0.0
    for i, bytes_ in enumerate((of_run * share).tolist()):
        if size >= COMPACT_SPLIT_BYTES_MIN and bytes_:
            part, size = part + 1, 0.0
        part_of[i] = part
        size += bytes_
    place = part_of[run]
    found = [chosen[place == i] for i in range(part + 1)]
    return [rows_ for rows_ in found if len(rows_)]


def _besides(
    made: Material,
    parts: Sequence[I64],
    replaces: tuple[str, ...],
    contested: Sequence[Contested],
) -> list[Beside]:
    """What each index says beside its rows: of a stream, where it has rows; all else in the first."""
    home: dict[int, int] = {}
    for i, part in enumerate(parts):
        for place in np.unique(made.rows.stream[part]).tolist():
            home.setdefault(place, i)
    notes: list[dict[int, StreamNotes]] = [{} for _ in range(max(1, len(parts)))]
    for place, note in made.streams.notes.items():
        notes[home.get(place, 0)][place] = note
    of_stream = {name: home.get(place, 0) for name, place in made.streams.places.items()}
    frames: list[list[FrameRef]] = [[] for _ in notes]
    for frame in made.streams.frames:
        # where its rows are, so that the index tells whose they are
        for i in {of_stream.get(part[0], 0) for part in frame.parts or ()} or {0}:
            frames[i].append(frame)
    disputed: list[list[Contested]] = [[] for _ in notes]
    for one in contested:
        disputed[of_stream.get(one.stream_id, 0)].append(one)
    besides = [
        Beside(note, tuple(of_part), tuple(lines))
        for note, of_part, lines in zip(notes, frames, disputed, strict=True)
    ]
    besides[0] = replace(besides[0], replaces=replaces)
    return besides


def _put_segments(
    store: Store,
    place: Place,
    made: Material,
    parts: Sequence[I64],
    besides: Sequence[Beside],
    merged: Merged,
) -> bytes:
    """The object that commits; its segments are in the store."""
    if not parts:
        name = keys.parse_index_key(merged.key)
        return made.notes(besides[0], (name.min_ts, name.max_ts))
    started_s = time.monotonic()
    places = [replace(place, last=str(i)) for i in range(len(parts))]
    built = [made.build(part, beside) for part, beside in zip(parts, besides, strict=True)]
    refs = [put_segment(store, at, one.segment) for at, one in zip(places, built, strict=True)]
    indexes = [one.index(ref) for one, ref in zip(built, refs, strict=True)]
    if is_stale(started_s):
        refs = [
            put_segment(store, at, one.segment, again=True)
            for at, one in zip(places, built, strict=True)
        ]
        indexes = [one.index(ref) for one, ref in zip(built, refs, strict=True)]
    merged.segments = [ref.key for ref in refs]
    if len(indexes) == 1:
        return indexes[0]
    names = [member_key(merged.key, i) for i in range(len(indexes))]
    return encode_bundle(list(zip(names, indexes, strict=True)))


def _replaces(contents: Contents, chosen: Sequence[SegmentIndex]) -> tuple[str, ...]:
    """These, all they replace, and bundles that hold nothing else. What is gone by now is named, too: a
    copy of its index may be committed by who was stopped meanwhile, and its segment would be missed."""
    named = {index.key for index in chosen}
    named = named.union(*(index.head.replaces for index in chosen))
    bundles = (held for held in contents.objects if held.is_bundle)
    named |= {held.key for held in bundles if named.issuperset(i.key for i in held.indexes)}
    return tuple(sorted(named))


def _bounds(names: Iterable[keys.IndexName]) -> tuple[int, int]:
    """Whoever lists one of the replaced lists what replaces it."""
    found = list(names)
    return min(name.min_ts for name in found), max(name.max_ts for name in found)


def _digest(chosen: Iterable[SegmentIndex]) -> str:
    """The same merge has the same name, whoever does it."""
    text = "\n".join(sorted(index.key for index in chosen))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
