"""What is there: runs, streams, call sites. From indexes alone where they suffice."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ranklog.answer.completeness import Window, judge, with_skipped
from ranklog.answer.deleted import Gone
from ranklog.answer.facts import check_terms, facts_hold, run_facts, unknown_keys
from ranklog.answer.render import render_time
from ranklog.answer.runs import run_rows, stream_rows
from ranklog.client.answer import Listing
from ranklog.client.catalog import LINES_AND_POINTS, Launch
from ranklog.client.catalog import Listing as Bounds
from ranklog.client.lost import list_all_launches, unlisted_launches
from ranklog.client.manifests import Manifests, load_manifests
from ranklog.client.reader import Reader
from ranklog.client.search import Search, begin, timed
from ranklog.client.unheard import find_unheard
from ranklog.client.warn import check_patterns
from ranklog.layout import schema
from ranklog.merge.groups import GroupMerge
from ranklog.merge.lines import line_rank
from ranklog.model import query as q
from ranklog.model.answer import Completeness, Report
from ranklog.model.frame import KIND_POINT
from ranklog.model.index import SiteCount, StreamEntry
from ranklog.model.levels import parse_level
from ranklog.model.tombstone import Tombstones
from ranklog.plan.scope import STREAM_FIELDS, streams_hold
from ranklog.plan.tasks import Groups, Outcome
from ranklog.spmd.callsites import CallSites

_SITE_KEYS = (
    schema.STREAM,
    schema.RANK,
    schema.TID,
    schema.LEVEL,
    schema.CALL_SITE,
    schema.FUNCTION,
    schema.LOGGER,
)


# What tells rows apart.
_BUCKETED = ("call_site", "function", "logger", "level", "template")


def list_runs(reader: Reader, query: q.Query, *, manifest: bool = False) -> Listing:
    """Launches with their states, newest first. Bounds choose launches; a row is of all of it.

    The query asks for facts of runs and of their manifests; `manifest`: rows with the whole one.
    """
    check_terms(query.expr)
    check_patterns(query.expr, reader.regexes)
    report = Report()
    with timed(report, "list"):
        launches = None if query.run is None else reader.catalog.select(query.run)
        if launches is not None:
            keys = reader.catalog.list_launches(launches, kinds=LINES_AND_POINTS).keys
            wanted = {launch.run_id for launch in launches}
        else:
            keys = reader.catalog.list_time(None, None, LINES_AND_POINTS).keys
            wanted = None
        loaded = reader.indexes.load(keys)
    entries, points = (
        [
            entry
            for index in loaded.indexes
            for entry in index.head.streams
            if (index.head.kind == KIND_POINT) == of_points
            and (wanted is None or entry.stream.run_id in wanted)
        ]
        for of_points in (False, True)
    )
    launches_seen = {(entry.stream.run, entry.stream.launch) for entry in (*entries, *points)}
    with timed(report, "scan"):
        told = load_manifests(reader.store, reader.tenant, launches_seen, whole=manifest)
    report.bytes_read = loaded.bytes_read + told.bytes_read
    report.warnings += told.warnings
    tombstones = reader.tombstones.load()
    judged = _judge_runs(reader, query, launches, launches_seen, tombstones, loaded.failed)
    gone = Gone(tombstones)
    rows = run_rows(entries, reader.now_ns(), loaded.failed, told.told, points, gone)
    rows = [row for row in rows if _touches(row["first_ns"], row["last_ns"], query)]
    rows = _asked_for(rows, told, query, reader, report)
    if manifest:
        rows = [row | {"manifest": told.told[row["run_id"]].manifest} for row in rows]
    report.run_ids = [row["run_id"] for row in rows]
    return Listing(rows, judged, report)


def _judge_runs(
    reader: Reader,
    query: q.Query,
    launches: Sequence[Launch] | None,
    seen: Iterable[tuple[str, str]],
    tombstones: Tombstones,
    failed: Sequence[dict[str, str]],
) -> Completeness:
    """Whether all runs are listed: complete unless an index could not be read, or a launch is named in
    the store of which none was. Each row has its own."""
    asked = list_all_launches(reader) if launches is None else launches
    read = {f"{run}@{launch}" for run, launch in seen}
    bounds = Bounds([], query.since_ns, query.until_ns)
    lost = unlisted_launches(reader, asked, read, tombstones, bounds)
    judged = judge((), Window(), [*failed, *lost])
    if launches is None:  # what waits may be of runs that nobody has seen yet
        waiting = replace(judged, waiting=reader.waiting.load())
        return with_skipped(waiting, judged.skipped_tasks)
    unheard = find_unheard(reader, launches, read, Window(), tombstones, LINES_AND_POINTS)
    return unheard.joined(judged)


def _asked_for(
    rows: list[dict[str, Any]], told: Manifests, query: q.Query, reader: Reader, report: Report
) -> list[dict[str, Any]]:
    """Rows whose facts fulfil the query; a key that none has is a warning."""
    if isinstance(query.expr, q.Everything):
        return rows
    facts = [run_facts(row, told.told[row["run_id"]].manifest) for row in rows]
    for key in unknown_keys(query.expr, facts):
        known = {name for one in facts for name in one}
        near = difflib.get_close_matches(key, known, n=1)
        report.warnings.append(
            f"no run in scope has the key {key}" + (f"; did you mean {near[0]}?" if near else "")
        )
    return [
        row
        for row, one in zip(rows, facts, strict=True)
        if facts_hold(query.expr, one, reader.regexes)
    ]


def _touches(first_ns: int | None, last_ns: int | None, query: q.Query) -> bool:
    if first_ns is None or last_ns is None:
        return query.since_ns is None and query.until_ns is None
    return (query.since_ns is None or last_ns >= query.since_ns) and (
        query.until_ns is None or first_ns < query.until_ns
    )


def list_streams(reader: Reader, query: q.Query) -> Listing:
    """Streams of the launches in scope for which the query's terms on streams hold."""
    run = begin(reader, query, points=True)
    skipped = run.skipped()
    entries = _fitting(run)
    gone = run.scope.gone()
    rows = stream_rows(entries, skipped, gone)
    if len(entries) == sum(1 for _ in run.scope.entries()):
        return Listing(rows, run.completeness(), run.report)
    judged = judge(entries, run.scope.window(), skipped, gone=gone)
    return Listing(rows, run.scope.unheard.joined(judged), run.report)


def _fitting(run: Search) -> list[StreamEntry]:
    """Entries of streams by rank, host, attempt and the like; terms on lines say nothing here."""
    entries = list(run.scope.entries())
    expr = run.query.expr
    for term in expr.items if isinstance(expr, q.And) else (expr,):
        if isinstance(term, q.Field) and term.key in (*STREAM_FIELDS, "rank"):
            held = streams_hold(term, entries, run.reader.regexes)
            entries = [entry for entry, holds in zip(entries, held, strict=True) if holds]
    return entries


def list_callsites(reader: Reader, query: q.Query, *, uneven: bool = False) -> Listing:
    """Call sites and templates of what matches, largest first.

    `uneven` leaves out what all ranks say equally often. Console copies are left out.
    """
    run = begin(reader, query)
    sites = CallSites()
    if _indexes_suffice(run):
        for index in run.scope.indexes.values():
            if index.head.segment is not None:
                sites.add(run.sites_of(index), index.templates)
        run.report.notes.append("from indexes alone")
    else:
        plan = run.plan(_without_copies(run), Groups(_SITE_KEYS, extent=True))
        for wave in run.outcomes(plan):
            for _, outcome in wave:
                _add_sites(run, outcome, sites)
    rows = [site.to_json(render_time) for site in sites.sites(hide_alike=uneven)]
    if query.every_ns is not None or query.every_iterations is not None:
        _add_buckets(run, rows)
    completeness = run.completeness()
    return Listing(rows, completeness, run.report)


def _add_buckets(run: Search, rows: list[dict[str, Any]]) -> None:
    """`buckets` of each row: its lines by time or iterations, without empty ones."""
    query = run.query
    merge = GroupMerge(run.scope.indexes, _BUCKETED, query.every_ns, query.every_iterations)
    for wave in run.outcomes(run.plan(_without_copies(run), merge.shape)):
        for _, outcome in wave:
            merge.add(outcome)
    found: dict[tuple[Any, ...], list[dict[str, int]]] = {}
    for key in sorted(merge.groups, key=lambda key: -1 if key[-1] is None else key[-1]):
        if key[-1] is not None:
            bucket = {merge.fields[-1]: key[-1], "count": merge.groups[key].count}
            found.setdefault(key[:-1], []).append(bucket)
    for row in rows:
        level = None if row["level"] is None else parse_level(row["level"].removeprefix("LEVEL "))
        place = [level if name == "level" else row[name] for name in _BUCKETED]
        row["buckets"] = found.get(tuple(place), [])


def _without_copies(run: Search) -> q.Expr:
    copies = q.Field("copy", ":", (q.Exact("true"),))
    return q.And((run.expr(), q.Not(copies)))


def _indexes_suffice(run: Search) -> bool:
    """Whether every row of every index is in scope, once, and nothing restricts it."""
    listing = run.scope.listing
    bounded = listing.from_ns is not None or listing.to_ns is not None
    restricted = not isinstance(run.query.expr, q.Everything) or bounded or run.query.mute_common
    if restricted or run.scope.skips or run.query.full_scan:
        return False
    return all(_in_scope(run, entry) for entry in _all_entries(run))


def _all_entries(run: Search) -> Iterator[StreamEntry]:
    return (entry for index in run.scope.indexes.values() for entry in index.head.streams)


def _in_scope(run: Search, entry: StreamEntry) -> bool:
    return not entry.lines or (run.scope.holds(entry) and not entry.stream.copy)


def _add_sites(run: Search, outcome: Outcome, sites: CallSites) -> None:
    """Groups of an outcome as the counts an index would hold."""
    columns = outcome.columns
    for i, number in enumerate(columns.get("segment", ())):
        index = run.scope.indexes[number]
        own = index.head.streams[columns[schema.STREAM][i]].stream.rank
        rank = line_rank(own, columns[schema.RANK][i])
        count = SiteCount(
            call_site=columns[schema.CALL_SITE][i],
            function=columns[schema.FUNCTION][i],
            logger=columns[schema.LOGGER][i],
            level=columns[schema.LEVEL][i],
            tid=columns[schema.TID][i],
            count=columns["count"][i],
            text_bytes=columns["bytes"][i],
            min_ts=columns["first_ns"][i],
            max_ts=columns["last_ns"][i],
            ranks=((schema.NO_RANK if rank is None else rank, columns["count"][i]),),
        )
        sites.add([count], index.templates)
