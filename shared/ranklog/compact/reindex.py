"""Indexes from segments, where index objects were deleted or damaged.

A segment that no index names gets one, unless others answer for all its rows: then it is what a merge
replaced, or an orphan. Of a damaged index the head is used where it can still be read; else what only
the index knew (fences, ends, drops, headers of frames) is lost with it, and answers say *behind*.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ranklog.compact.bare import BareSegment, describe, names_of
from ranklog.compact.contents import Contents, Folder, folders, read_contents
from ranklog.compact.merge import material
from ranklog.compact.orphans import named_segments
from ranklog.compact.streams import nothing_hidden, rows_that_count
from ranklog.errors import Corrupt
from ranklog.ingest.commit import put_markers, put_segment
from ranklog.layout import keys
from ranklog.layout.build import Beside, stream_table
from ranklog.layout.bundle import COMPACTED, open_indexes
from ranklog.layout.index import SegmentIndex
from ranklog.model.index import IndexHead, SegmentRef, StreamEntry
from ranklog.plan.overlap import Ranges, difference, union
from ranklog.store.protocol import ObjectInfo, Store


@dataclass(slots=True)
class ReindexReport:
    """Keys. `written`: new indexes; `lacking`: the segments that they are of, with their streams; `damaged`: those that stay so, `dropped`: those that were deleted;
    `answered`: segments whose rows others have; `failed`: what can't be read, and why."""

    segments: int = 0
    written: list[str] = field(default_factory=list)
    lacking: dict[str, tuple[StreamEntry, ...]] = field(default_factory=dict)
    damaged: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    answered: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Counts, as a program sees them."""
        return {
            "segments": self.segments,
            "written": len(self.written),
            "damaged": len(self.damaged),
            "dropped": len(self.dropped),
            "answered": len(self.answered),
            "failed": self.failed,
        }


def reindex(
    store: Store, tenant: str, *, dry_run: bool = False, drop_damaged: bool = False
) -> ReindexReport:
    """Every folder of a tenant. `drop_damaged`: delete damaged indexes that none was put in the place
    of, once every segment beside them has one. Raises what the store raises; again, it goes on."""
    report = ReindexReport()
    for folder in _folders(store, tenant):
        _Folder(store, folder, report, dry_run, drop_damaged).run()
    return report


def _folders(store: Store, tenant: str) -> Iterator[Folder]:
    """Folders that hold a segment or an index."""
    known = dict.fromkeys(folders(store, tenant))
    known |= dict.fromkeys(folders(store, tenant, kind="data"))
    yield from known


@dataclass(frozen=True, slots=True)
class _Folder:
    store: Store
    folder: Folder
    report: ReindexReport
    dry_run: bool
    drop_damaged: bool

    def run(self) -> None:
        listed = list(self.store.list(self.folder.data_prefix))
        # What a merge made first: the few answer for the many that it replaced.
        listed.sort(
            key=lambda info: not info.key.startswith(f"{self.folder.data_prefix}{COMPACTED}.")
        )
        found = read_contents(self.store, self.folder)
        named = named_segments(found)
        held = stored_ranges(index for one in found for index in one.live())
        damaged = {key: data for one in found for key, data in one.damaged.items()}
        salvaged = list(_salvaged(damaged))
        self.report.segments += len(listed)
        taken: set[str] = set()
        for info in listed:
            if info.key in named:
                continue
            try:
                taken |= self._segment(info, held, damaged, salvaged)
            except Corrupt as error:
                self.report.failed[info.key] = error.message
        self._rest(found, damaged.keys() - taken)

    def _segment(
        self,
        info: ObjectInfo,
        held: dict[str, Ranges],
        damaged: dict[str, bytes],
        salvaged: Sequence[IndexHead],
    ) -> set[str]:
        """Index one segment; the damaged object that the index was put in the place of."""
        data = self.store.get(info.key)
        if not keys.segment_is_named(data, info.key):
            raise Corrupt(f"damaged segment: {info.key}")
        bare = _with_head(describe(data, info.key), salvaged)
        made = material(bare.kind, [bare], [data], nothing_hidden)
        chosen = rows_that_count(made.rows, {})
        entries, _ = stream_table(made.rows, chosen, {})
        if all(not difference(e.ranges, held.get(e.stream_id, [])) for e in entries):
            self.report.answered.append(info.key)
            return set()
        head, frames = bare.head, tuple(made.streams.frames)
        beside = Beside(made.streams.notes, frames, head.contested, head.replaces)
        built = made.build(chosen, beside)
        names = names_of(info.key)
        place = self.folder.place(*names)
        name = keys.IndexName(bare.kind, built.min_ts, built.max_ts, *names)
        key = _same(damaged, name) or place.index_key(bare.kind, (name.min_ts, name.max_ts))
        self.report.written.append(key)
        self.report.lacking[info.key] = tuple(entries)
        if not self.dry_run:
            ref = SegmentRef(info.key, info.length, built.segment.hash, info.etag)
            if not info.key.endswith(f".{built.segment.hash}.parquet"):
                ref = put_segment(self.store, place, built.segment)  # an older version's encoding
            put_markers(self.store, place, {(e.stream.run, e.stream.launch) for e in entries})
            self.store.put(key, built.index(ref))
        for entry in entries:
            held[entry.stream_id] = union([*held.get(entry.stream_id, []), *entry.ranges])
        return {key} & damaged.keys()

    def _rest(self, found: Sequence[Contents], left: Iterable[str]) -> None:
        """Damaged objects that no index was put in the place of. They stay, and answers *partial*: what
        they said of streams (an end, a fence) may be all that tells that a line is missing."""
        for one in found:
            others = one.failed.keys() - one.damaged.keys()
            self.report.failed |= {key: one.failed[key] for key in others}
        unread = any(key.startswith(self.folder.data_prefix) for key in self.report.failed)
        for key in sorted(left):
            if not self.drop_damaged or unread:
                self.report.damaged.append(key)
                continue
            self.report.dropped.append(key)
            if not self.dry_run:
                self.store.delete(key)


def stored_ranges(indexes: Iterable[SegmentIndex]) -> dict[str, Ranges]:
    """What indexes with a segment have of each stream."""
    found: dict[str, Ranges] = {}
    for index in indexes:
        for entry in index.head.streams if index.head.segment is not None else ():
            found.setdefault(entry.stream_id, []).extend(entry.ranges)
    return {name: union(ranges) for name, ranges in found.items()}


def _salvaged(damaged: dict[str, bytes]) -> Iterator[IndexHead]:
    """Heads that can still be read."""
    for key, data in damaged.items():
        try:
            for index in open_indexes(data, key):
                yield index.head
        except Corrupt:
            continue


def _with_head(bare: BareSegment, salvaged: Sequence[IndexHead]) -> BareSegment:
    for head in salvaged:
        if head.segment is not None and head.segment.key == bare.key:
            return BareSegment(bare.key, bare.kind, head, bare.series)
    return bare


def _same(damaged: Iterable[str], name: keys.IndexName) -> str | None:
    """The damaged object that bore this index; its bounds may be wider."""
    for key in damaged:
        there = keys.parse_index_key(key)
        if (there.kind, there.source, there.first, there.last) == (
            name.kind,
            name.source,
            name.first,
            name.last,
        ):
            return key
    return None
