"""New lines as they become visible: each once, in order within its stream, none left out.

new indexes   the hours of now and the pointers in them       (client/arrivals)
arrive        which lines of which stream are new             (client/follow)
choose        what is not held back at a hole
scan          those lines, where the query matches
commit        they are shown
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ranklog import limits
from ranklog.client.arrivals import Arrivals, Seen
from ranklog.client.catalog import Listing
from ranklog.client.follow import Following, Release, older_ranges
from ranklog.client.muting import muted_terms
from ranklog.client.reader import Reader
from ranklog.client.scope import Scope
from ranklog.client.search import Search, begin
from ranklog.client.tail_items import TailItem
from ranklog.client.warn import check_patterns, terms
from ranklog.delete.tombstones import hidden_rows
from ranklog.errors import BadQuery, RanklogError
from ranklog.layout import keys
from ranklog.layout.index import SegmentIndex
from ranklog.merge.lines import LineMerge
from ranklog.model import query as q
from ranklog.model.answer import Line, Report
from ranklog.model.index import StreamEntry
from ranklog.plan.scope import STREAM_FIELDS, streams_hold
from ranklog.plan.tasks import Lines, Task
from ranklog.plan.tree import all_of

POLL_S = 0.25
# What every rank says is looked up again after so long.
MUTED_FOR_NS = 30 * limits.SECOND_NS
# A commit may come so much later than the time in its name.
NOTES_LATE_NS = 120 * limits.SECOND_NS
_NOTES_AT_ONCE = 4_096
# New indexes taken in at once; the next round takes the next ones.
_INDEXES_AT_ONCE = 256


@dataclass(slots=True)
class TailState:
    """Where a tail is. `run_ids` None: all runs; `run`: all launches of one."""

    run_ids: tuple[str, ...] | None = None
    run: str | None = None
    seen: Seen = field(default_factory=Seen)
    following: Following = field(default_factory=Following)
    tries: int = 0
    changed: bool = False


class Tail:
    """One query that follows one tenant's lines. Not for use by several threads."""

    def __init__(self, reader: Reader, query: q.Query, state: TailState | None = None) -> None:
        _check(query)
        check_patterns(query.expr, reader.regexes)
        self._reader = reader
        self._query = query
        self.state = state or self._begin()
        self._arrivals = Arrivals(reader.store, reader.tenant, self.state.seen)
        self._muted_terms: list[q.Expr] = []
        self._muted_ns = -MUTED_FOR_NS
        self.heard: list[StreamEntry] = []  # what the indexes of the last rounds say of streams

    # --- where it begins ------------------------------------------------------------------------
    def _begin(self) -> TailState:
        """All that is committed now lies behind."""
        reader, run = self._reader, self._query.run
        state = TailState(changed=True)
        if run is not None:
            launches = reader.catalog.select(run)
            if run.launch == "*":
                state.run = run.name
            else:
                state.run_ids = tuple(item.run_id for item in launches)
        now_ns = reader.now_ns()
        arrivals = Arrivals(reader.store, reader.tenant, state.seen)
        found = arrivals.new(now_ns)
        recent = keys.hour_of(max(0, now_ns - limits.HOUR_NS))
        hot = [key for key in found if _at_or_after(state.seen.listed[key], recent)]
        loaded = reader.indexes.load(hot)
        self.state = state
        for index in loaded.indexes:
            state.following.begin(self._entries(index))
        there = loaded.opened | set(found).difference(hot)
        for key in found:
            if key in there:
                state.seen.add(key)
        return state

    def _entries(self, index: SegmentIndex) -> list[StreamEntry]:
        """Streams of an index that the query is about."""
        state = self.state
        found = [
            entry
            for entry in index.head.streams
            if (state.run_ids is None or entry.stream.run_id in state.run_ids)
            and (state.run is None or entry.stream.run == state.run)
        ]
        expr = self._query.expr
        for term in expr.items if isinstance(expr, q.And) else (expr,):
            if isinstance(term, q.Field) and term.key in (*STREAM_FIELDS, "rank"):
                held = streams_hold(term, found, self._reader.regexes)
                keep = zip(found, held, strict=True)
                ranked = term.key == "rank"
                found = [entry for entry, holds in keep if holds or (ranked and entry.ranks)]
        return found

    # --- a round --------------------------------------------------------------------------------
    def poll(self, rows: int = limits.TAIL_ROWS_MAX) -> list[TailItem]:
        """What became visible since the last round. Raises what the store raises; then nothing of
        the round counts, and it can be repeated."""
        now_ns = self._reader.now_ns()
        following = self.state.following
        self.heard = []
        items: list[TailItem] = []
        chosen = following.choose(now_ns, rows)
        if sum(release.part.end - release.part.first for release in chosen) < rows:
            items += self._take_in(now_ns)
            chosen = following.choose(now_ns, rows)
        if chosen:
            items += self._show(chosen)
        return items

    def _take_in(self, now_ns: int) -> list[TailItem]:
        """New indexes; what can't be read at all is told."""
        state = self.state
        new = self._arrivals.new(now_ns)[:_INDEXES_AT_ONCE]
        if not new:
            return []
        state.changed = True
        loaded = self._reader.indexes.load(new)
        self._look_back(loaded.indexes, now_ns)
        for index in loaded.indexes:
            entries = self._entries(index)
            self.heard += entries
            for entry in entries if index.head.segment is not None else ():
                state.following.arrive(entry, index.key, now_ns)
        failed = {item["segment"]: item for item in loaded.failed}
        lost = []
        for key in new:
            if key in loaded.opened:
                state.seen.add(key)
                continue
            times = state.seen.put_off(key, now_ns)  # its commit may still come
            if times >= limits.TAIL_TRIES_MAX and key in failed and self._is_there(key):
                state.seen.add(key)
                lost.append(TailItem(skipped=failed[key]))
        return lost

    def notes(self, since_ns: int) -> list[StreamEntry]:
        """What commits without lines (heartbeats of quiet processes, ends) say of streams, since a while
        before this time; some was said before. They lie among the late indexes, and nothing points there.
        """
        reader, now_ns = self._reader, self._reader.now_ns()
        low = max(0, since_ns - NOTES_LATE_NS)
        found: list[str] = []
        for day in dict.fromkeys(keys.day_text(ns) for ns in (low, now_ns)):
            prefix = keys.index_late_prefix(reader.tenant, day)
            listed = reader.store.list(prefix, start_after=f"{prefix}line.{low:020d}")
            found += [item.key for item in listed if item.key.startswith(f"{prefix}line.")]
        loaded = reader.indexes.load(found[-_NOTES_AT_ONCE:])
        bare = (index for index in loaded.indexes if index.head.segment is None)
        return [entry for index in bare for entry in self._entries(index)]

    def _is_there(self, key: str) -> bool:
        return any(item.key == key for item in self._reader.store.list(key))

    def _look_back(self, indexes: Iterable[SegmentIndex], now_ns: int) -> None:
        """What the store has of streams that were not heard of for long."""
        unsure = [
            entry
            for index in indexes
            for entry in self._entries(index)
            if self.state.following.is_unsure(entry)
        ]
        for run, launch in sorted({(e.stream.run, e.stream.launch) for e in unsure}):
            [chosen] = self._reader.catalog.select(q.RunSelector(run, launch=launch))
            listed = self._reader.catalog.list_launches([chosen]).keys
            older = self._arrivals.older_than_tail(listed, now_ns)
            loaded = self._reader.indexes.load(older)
            ranges = older_ranges([e for index in loaded.indexes for e in index.head.streams])
            for entry in unsure:
                if (entry.stream.run, entry.stream.launch) == (run, launch):
                    known = list(ranges.get(entry.stream_id, ()))
                    self.state.following.learn(entry, known)

    def _show(self, chosen: Sequence[Release]) -> list[TailItem]:
        """Read the lines of these ranges; where one can't be read, later, and at last without it."""
        state = self.state
        state.changed = True
        lines, failed, may_pass = self._read(chosen)
        if may_pass and state.tries < limits.TAIL_TRIES_MAX:
            state.tries += 1
            return []
        state.tries = 0
        state.following.commit(chosen)
        lost = [TailItem(skipped={"segment": k, "reason": why}) for k, why in failed.items()]
        return [*lost, *_in_order(chosen, lines)]

    def _read(self, chosen: Sequence[Release]) -> tuple[list[Line], dict[str, str], bool]:
        """The lines of these ranges that match, the segments that can't be read, and whether some
        of them may be readable soon."""
        names = {release.part.index for release in chosen}
        loaded = self._reader.indexes.load(names)
        failed = {item["segment"]: item["reason"] for item in loaded.failed}
        there = {index.key for index in loaded.indexes}
        failed |= dict.fromkeys(names - there - failed.keys(), "the index is gone")
        scope = Scope(None, Listing(sorted(there)), dict(enumerate(loaded.indexes)))
        tables = {number: index.head.streams for number, index in scope.indexes.items()}
        scope.skips = hidden_rows(tables, self._reader.tombstones.load())
        run = Search(self._reader, self._query, scope, Report())
        plan = run.plan(self._expr(), Lines(limit=None))
        merge = LineMerge(scope.indexes, limit=None, newest=False)
        tasks = []
        for scan in plan.scans:
            wanted = _wanted(scope.indexes[scan.number], chosen)
            scan = replace(scan, wanted=wanted)
            tasks.append(Task(plan.expr, (scan,), plan.shape, plan.near, self._reader.deadline_s))
        may_pass = bool(failed)
        for outcome in self._reader.run(tasks):
            failed |= {failure.key: failure.reason for failure in outcome.failed}
            may_pass = may_pass or outcome.retryable
            merge.add(outcome)
        return merge.lines(), failed, may_pass

    def _expr(self) -> q.Expr:
        state, query = self.state, self._query
        limited: list[q.Expr] = []
        if state.run_ids is not None:
            limited.append(q.Field("run_id", ":", tuple(map(q.Exact, state.run_ids))))
        if state.run is not None:
            limited.append(q.Field("run", ":", (q.Exact(state.run),)))
        if query.since_ns is not None or query.until_ns is not None:
            limited.append(q.Field("time", ":", (q.Range(query.since_ns, query.until_ns),)))
        return all_of([*limited, *self._muted(), query.expr])

    def _muted(self) -> list[q.Expr]:
        """What is not to be shown as every rank says it; looked up again now and then."""
        if not self._query.mute_common:
            return []
        now_ns = self._reader.now_ns()
        if now_ns - self._muted_ns >= MUTED_FOR_NS:
            asked = replace(self._query, expr=q.Everything())
            self._muted_terms = muted_terms(begin(self._reader, asked))
            self._muted_ns = now_ns
        return self._muted_terms

    def follow(self, sleep: Callable[[float], object] = time.sleep) -> Iterator[TailItem]:
        """Items for ever. A store that does not answer for a while is waited for."""
        missed = 0
        while True:
            try:
                items = self.poll()
                missed = 0
            except RanklogError as error:
                missed += 1
                if not error.retryable or missed > limits.TAIL_TRIES_MAX:
                    raise
                items = []
            yield from items
            if not items:
                sleep(POLL_S * 2**missed)


def _check(query: q.Query) -> None:
    if query.kind != "line":
        raise BadQuery("this store holds lines, not points", hint="leave out kind:point")
    if query.last_ns is not None:
        raise BadQuery("a tail begins now and has no last:", hint="search looks back")
    if any(isinstance(term, (q.Near, q.Spike)) for term in terms(query.expr)):
        raise BadQuery("a tail can't look for near() or spike()", hint="search can")


def _at_or_after(places: Sequence[tuple[str, int]], hour: int) -> bool:
    return any(of >= hour for _, of in places)


def _wanted(
    index: SegmentIndex, chosen: Sequence[Release]
) -> tuple[tuple[int, int, int, int], ...]:
    """The chosen rows of a segment by the position of their stream."""
    place = {entry.stream_id: at for at, entry in enumerate(index.head.streams)}
    return tuple(
        (place[release.stream_id], release.part.first, release.part.end, -1)
        for release in chosen
        if release.part.index == index.key
    )


def _in_order(chosen: Sequence[Release], lines: Sequence[Line]) -> list[TailItem]:
    """Streams merged by time; within a stream by seq, whatever its times are."""
    of_stream: dict[str, list[Line]] = {}
    for line in lines:
        of_stream.setdefault(line.stream_id, []).append(line)
    parts: dict[str, list[Release]] = {}
    for release in chosen:
        parts.setdefault(release.stream_id, []).append(release)
    rows = [
        _stream_items(stream_id, releases, of_stream.get(stream_id, ()))
        for stream_id, releases in parts.items()
    ]
    return [item for _, _, item in heapq.merge(*rows, key=lambda row: row[:2])]


def _stream_items(
    stream_id: str, releases: Sequence[Release], lines: Iterable[Line]
) -> list[tuple[int, str, TailItem]]:
    """Items of one stream in order of seq, each with the latest time so far."""
    rest = sorted(lines, key=lambda line: line.seq)
    rows: list[tuple[int, str, TailItem]] = []
    at, latest = 0, 0
    for release in releases:
        if release.hole is not None:
            if at < len(rest):
                latest = max(latest, rest[at].ts_ns)
            rows.append((latest, stream_id, TailItem(hole=release.hole)))
        while at < len(rest) and rest[at].seq < release.part.end:
            latest = max(latest, rest[at].ts_ns)
            rows.append((latest, stream_id, TailItem(rest[at], late=release.part.late)))
            at += 1
    return rows
