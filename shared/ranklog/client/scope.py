"""What a query covers: launches, bounds, and the indexes of the hours between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ranklog.answer.completeness import Window, absent_ranks, judge_streams, with_skipped
from ranklog.answer.deleted import Gone
from ranklog.client.catalog import LINES, LINES_AND_POINTS, Kinds, Launch, Listing
from ranklog.client.cursor import Cursor
from ranklog.client.imported import load_promised, may_be_imported
from ranklog.client.lost import lost_launches
from ranklog.client.manifests import load_declared
from ranklog.client.reader import Reader
from ranklog.client.unheard import Unheard, find_unheard
from ranklog.delete.tombstones import hidden_rows
from ranklog.layout.claims import Claims
from ranklog.layout.index import SegmentIndex
from ranklog.model import query as q
from ranklog.model.answer import Completeness, Report
from ranklog.model.frame import KIND_POINT
from ranklog.model.index import StreamEntry
from ranklog.model.tombstone import Tombstones
from ranklog.plan.overlap import Ranges, difference, overlaps, union


@dataclass(slots=True)
class Scope:
    """`indexes[number]` has rows in scope or not: pruning decides. `failed` could not be read.
    `points`: indexes of points, where the question is of these; their numbers are others.

    `launches` None: all runs. `skips` are the rows of a segment that another one answers.
    `span`: times of the streams in scope, half-open. `tombstones`: `skips` has their rows, too.
    `contested`: by stream_id the lines that two frames had with different content. `unheard`: what
    `judged` has of launches of which nothing was read.
    """

    launches: list[Launch] | None
    listing: Listing
    indexes: dict[int, SegmentIndex] = field(default_factory=dict)
    failed: list[dict[str, str]] = field(default_factory=list)
    skips: dict[int, list[tuple[int, int, int]]] = field(default_factory=dict)
    index_bytes: int = 0
    judged: Completeness = field(default_factory=Completeness)
    span: tuple[int | None, int | None] = (None, None)
    points: dict[int, SegmentIndex] = field(default_factory=dict)
    tombstones: Tombstones = field(default_factory=Tombstones)
    contested: dict[str, Ranges] = field(default_factory=dict)
    unheard: Unheard = field(default_factory=Unheard)

    @property
    def place(self) -> tuple[str, ...]:
        """Names of all that an answer depends on: indexes, and what was deleted."""
        read = (*self.indexes.values(), *self.points.values())
        return (*(index.key for index in read), *self.tombstones.keys)

    @property
    def run_ids(self) -> list[str]:
        return [launch.run_id for launch in self.launches or ()]

    def holds(self, entry: StreamEntry) -> bool:
        """Whether a stream belongs to the launches in scope."""
        return self.launches is None or entry.stream.run_id in self.run_ids

    def entries(self) -> Iterable[StreamEntry]:
        """Stream entries in scope, of every index that was read."""
        wanted = None if self.launches is None else set(self.run_ids)
        for index in (*self.indexes.values(), *self.points.values()):
            for entry in index.head.streams:
                if wanted is None or entry.stream.run_id in wanted:
                    yield entry

    def restriction(self) -> list[q.Expr]:
        """Terms that keep a query inside the scope."""
        terms: list[q.Expr] = []
        if self.launches is not None:
            names = tuple(q.Exact(run_id) for run_id in self.run_ids)
            terms.append(q.Field("run_id", ":", names) if names else q.Not(q.Everything()))
        if self.listing.from_ns is not None or self.listing.to_ns is not None:
            span = q.Range(self.listing.from_ns, self.listing.to_ns)
            terms.append(q.Field("time", ":", (span,)))
        return terms

    def window(self) -> Window:
        """What was read, for completeness."""
        return Window.of(self.listing.from_ns, self.listing.to_ns)

    def gone(self) -> Gone:
        """What was deleted of the launches in scope."""
        names = None if self.launches is None else frozenset(self.run_ids)
        return Gone(self.tombstones, names)

    def completeness(self, failed: Sequence[dict[str, str]]) -> Completeness:
        """Of what was read, where `failed` could not be scanned."""
        parts = {item["segment"]: item for item in [*self.failed, *failed]}
        return with_skipped(self.judged, list(parts.values()))


def open_scope(
    reader: Reader, query: q.Query, cursor: Cursor | None, report: Report, *, points: bool = False
) -> Scope:
    """Resolve run and bounds, list, load. A page behind a cursor keeps the first page's scope.
    `points`: of points as well, with the lines that say how complete they are."""
    kinds = LINES_AND_POINTS if points else LINES
    launches = _launches(reader, query, cursor)
    from_ns, to_ns = query.since_ns, query.until_ns
    if cursor is not None:
        from_ns, to_ns = cursor.from_ns, cursor.to_ns
    elif query.last_ns is not None:
        newest = _newest(reader, launches, kinds)
        from_ns = max(from_ns or 0, newest - query.last_ns)
        to_ns = newest + 1 if to_ns is None else min(to_ns, newest + 1)
    if launches is not None:
        listing = reader.catalog.list_launches(launches, from_ns, to_ns, kinds)
    elif from_ns is None and to_ns is None:
        listing = reader.catalog.list_newest(kinds=kinds)
    else:
        listing = reader.catalog.list_time(from_ns, to_ns, kinds)
    if cursor is not None:
        listing = replace(listing, defaulted=cursor.defaulted)
    scope = load_scope(reader, launches, listing)
    _judge_by_imports(reader, scope, points=points)
    _judge_by_manifests(reader, scope)
    judge_unheard_in(reader, scope, kinds)
    _name_lost(reader, scope)
    if launches is None or scope.judged.state != "complete":  # what waits may be of any run
        waiting = replace(scope.judged, waiting=reader.waiting.load())
        scope.judged = with_skipped(waiting, scope.judged.skipped_tasks)
    fill_report(scope, report)
    return scope


def _launches(reader: Reader, query: q.Query, cursor: Cursor | None) -> list[Launch] | None:
    if cursor is not None and cursor.launches is not None:
        found = []
        for run, launch in cursor.launches:
            found += reader.catalog.select(q.RunSelector(run, launch=launch))
        return found
    return None if query.run is None else reader.catalog.select(query.run)


def _newest(reader: Reader, launches: list[Launch] | None, kinds: Kinds) -> int:
    """Time of the newest line in scope, 0 where there is none."""
    if launches is None:
        return reader.catalog.newest_ns(kinds) or 0
    newest = 0
    for launch in launches:
        entries = reader.catalog.entries(launch, kinds)
        times = [e.max_ts for e in entries if e.max_ts is not None]
        newest = max(newest, max(times, default=0))
    return newest


def load_scope(
    reader: Reader, launches: list[Launch] | None, listing: Listing, *, pinned: bool = False
) -> Scope:
    """Load what was listed; say which rows another index answers, and how complete it is. `pinned`:
    retention does not hide what a pin keeps."""
    loaded = reader.indexes.load(listing.keys)
    scope = Scope(launches, listing, failed=loaded.failed, index_bytes=loaded.bytes_read)
    # after the indexes: rows that are in none as they were deleted are known to be
    known_gone = reader.tombstones
    scope.tombstones = known_gone.for_pins() if pinned else known_gone.load()
    numbered = list(enumerate(loaded.indexes))
    scope.indexes = {n: index for n, index in numbered if index.head.kind != KIND_POINT}
    scope.points = {n: index for n, index in numbered if index.head.kind == KIND_POINT}
    window = scope.window()
    names = None if launches is None else tuple(scope.run_ids)
    place = (scope.place, names, window)
    known = reader.facts.get(place)
    if known is None:
        skips, contested = _overlaps(scope)
        judged = judge_streams(scope.entries(), window, gone=scope.gone(), contested=contested)
        known = (skips, contested, judged, _span(scope))
        reader.facts.put(place, known)
    scope.skips, scope.contested, scope.judged, scope.span = known
    return scope


def _judge_by_imports(reader: Reader, scope: Scope, *, points: bool) -> None:
    """What imports of the launches say is stored is missing where no index has it."""
    launches = scope.launches or ()
    if not launches or not may_be_imported(scope.indexes.values()):
        return
    window = scope.window()
    place = ("imports", scope.place, tuple(scope.run_ids), window, points)
    known = reader.facts.get(place)
    if known is None:
        promised = load_promised(reader.store, reader.tenant, launches, window, points=points)
        entries = (*scope.entries(), *promised.entries)
        judged = judge_streams(entries, window, gone=scope.gone(), contested=scope.contested)
        known = judged, promised.failed
        reader.facts.put(place, known)
    scope.judged, unread = known
    scope.failed = [*scope.failed, *unread]


def _judge_by_manifests(reader: Reader, scope: Scope) -> None:
    """Ranks that manifests speak of are absent where markers name hours of a launch in which no index
    has any stream of it: every index was lost, or is not committed yet."""
    window = scope.window()
    marked = [
        one for one in scope.launches or () if one.late_days or any(map(window.has, one.hours))
    ]
    if not marked:
        return
    place = ("manifests", scope.place, tuple(scope.run_ids), window)
    known = reader.facts.get(place)
    if known is None:
        read = {entry.stream.run_id for entry in scope.entries()}
        unheard = [one for one in marked if one.run_id not in read]
        declared = load_declared(reader.store, reader.tenant, unheard)
        known = absent_ranks((), window, declared, scope.gone())
        reader.facts.put(place, known)
    absent = sorted({*scope.judged.absent, *known})
    scope.judged = with_skipped(replace(scope.judged, absent=absent), ())


def judge_unheard_in(reader: Reader, scope: Scope, kinds: Kinds) -> None:
    """Launches of which nothing was read are no reason to call an answer complete."""
    launches = scope.launches
    if not launches:
        return
    place = ("read", scope.place, tuple(scope.run_ids))
    read = reader.facts.get(place)
    if read is None:
        read = frozenset(entry.stream.run_id for entry in scope.entries())
        reader.facts.put(place, read)
    window, tombstones = scope.window(), scope.tombstones
    scope.unheard = find_unheard(reader, launches, read, window, tombstones, kinds)
    scope.judged = scope.unheard.joined(scope.judged)


def _name_lost(reader: Reader, scope: Scope) -> None:
    """Where all runs are asked: launches of which every index in these hours was lost."""
    if scope.launches is not None:
        return
    place = ("lost", scope.place, scope.window(), scope.listing.defaulted)
    known = reader.facts.get(place)
    if known is None:
        read = (*scope.indexes.values(), *scope.points.values())
        known = lost_launches(reader, scope.listing, read, scope.tombstones)
        if not known:  # what is on its way, or is written anew, is there the next time
            reader.facts.put(place, known)
    scope.failed = [*scope.failed, *known]


def _overlaps(scope: Scope) -> tuple[dict[int, list[tuple[int, int, int]]], dict[str, Ranges]]:
    """Rows that others answer for or that were deleted; lines that two frames had."""
    heads = {
        number: index.head
        for number, index in (*scope.indexes.items(), *scope.points.items())
        if index.head.segment is not None
    }
    tables = {number: head.streams for number, head in heads.items()}
    claims = {number: Claims(head) for number, head in heads.items()}
    found = overlaps(tables, lambda number, entry: claims[number].of(entry))
    for number, rows in hidden_rows(tables, scope.tombstones).items():
        found.skips.setdefault(number, []).extend(rows)
    for one in (one for head in heads.values() for one in head.contested if one.frame):
        found.contested.setdefault(one.stream_id, []).append((one.first, one.end))
    return found.skips, {name: union(ranges) for name, ranges in found.contested.items()}


def skips_of(
    scope: Scope, kept: Mapping[str, Sequence[tuple[int, int]]]
) -> dict[int, list[tuple[int, int, int]]]:
    """Rows to skip so that of each stream only the lines in `kept` are left, each once."""
    skips = {number: list(skipped) for number, skipped in scope.skips.items()}
    for number, index in (*scope.indexes.items(), *scope.points.items()):
        for position, entry in enumerate(index.head.streams):
            others = difference(entry.ranges, kept.get(entry.stream_id, ()))
            if others:
                skips.setdefault(number, []).extend((position, a, b) for a, b in others)
    return skips


def _span(scope: Scope) -> tuple[int | None, int | None]:
    """Times of the streams in scope, half-open."""
    times = [
        (entry.min_ts, entry.max_ts)
        for entry in scope.entries()
        if entry.min_ts is not None and entry.max_ts is not None
    ]
    low = min((low for low, _ in times), default=None)
    return low, max((high + 1 for _, high in times), default=None)


def fill_report(scope: Scope, report: Report) -> None:
    """Bounds and launches, as they were chosen."""
    listing = scope.listing
    report.from_ns, report.to_ns, report.defaulted = (
        listing.from_ns,
        listing.to_ns,
        listing.defaulted,
    )
    if scope.launches is not None:
        from_ns, to_ns = scope.span
        report.from_ns = from_ns if report.from_ns is None else report.from_ns
        report.to_ns = to_ns if report.to_ns is None else report.to_ns
    report.run_ids = scope.run_ids
    report.bytes_read += scope.index_bytes
