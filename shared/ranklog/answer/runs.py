"""Runs and streams as rows, from the stream tables of their indexes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ranklog.answer.completeness import Window, judge
from ranklog.answer.deleted import NOTHING, Gone, visible
from ranklog.answer.manifests import flatten, topology
from ranklog.answer.render import completeness_json, render_time
from ranklog.limits import SECOND_NS
from ranklog.model.frame import StreamEnd
from ranklog.model.index import StreamEntry
from ranklog.model.stream import Stream
from ranklog.plan.overlap import difference, union

# A run whose streams did not end and that said nothing for so long is silent.
SILENT_AFTER_NS = 300 * SECOND_NS


@dataclass(slots=True)
class StreamSum:
    """One stream over all indexes: lines stored twice count once."""

    stream: Stream
    stream_id: str
    ranges: list[tuple[int, int]] = field(default_factory=list)
    line_bytes: int = 0  # of all entries, those of lines that were stored twice too
    point_bytes: int = 0
    first_ns: int | None = None
    last_ns: int | None = None
    last_iteration: int | None = None
    end: StreamEnd | None = None
    entries: list[StreamEntry] = field(default_factory=list)
    points: int = 0
    point_ranges: list[tuple[int, int]] = field(default_factory=list)

    def add_points(self, entry: StreamEntry) -> None:
        """An entry of an index of points: its ranges are of records. Of those that were stored twice a
        share of its points as large as that of its records counts."""
        self.add(entry, points=True)
        new = _size(difference(entry.ranges, union(self.point_ranges)))
        self.points += entry.lines * new // max(1, _size(entry.ranges))
        self.point_ranges += entry.ranges

    def add(self, entry: StreamEntry, *, points: bool = False) -> None:
        self.entries.append(entry)
        if points:
            self.point_bytes += entry.text_bytes
        else:
            self.ranges += entry.ranges
            self.line_bytes += entry.text_bytes
        self.first_ns = _least(self.first_ns, entry.min_ts)
        self.last_ns = _most(self.last_ns, entry.max_ts)
        self.last_iteration = _most(self.last_iteration, entry.max_iteration)
        if entry.end is not None and (self.end is None or entry.end.end_seq > self.end.end_seq):
            self.end = entry.end

    @property
    def lines(self) -> int:
        return _size(union(self.ranges))

    @property
    def text_bytes(self) -> int:
        """Of what was stored twice the share of its lines, or records, that are others."""
        return self.line_text_bytes + _share(self.point_bytes, self.point_ranges)

    @property
    def line_text_bytes(self) -> int:
        """The same, of lines alone."""
        return _share(self.line_bytes, self.ranges)


def _share(size: int, ranges: list[tuple[int, int]]) -> int:
    rows = _size(ranges)
    return size * _size(union(ranges)) // rows if rows else size


def _size(ranges: Iterable[tuple[int, int]]) -> int:
    return sum(end - first for first, end in ranges)


def sum_streams(
    entries: Iterable[StreamEntry], points: Iterable[StreamEntry] = (), gone: Gone = NOTHING
) -> list[StreamSum]:
    """One sum per stream, by run, launch, attempt, rank and channel. `points`: of indexes of points;
    `gone`: what was deleted and does not count."""
    sums: dict[str, StreamSum] = {}
    hidden = gone.tombstones
    for entry in entries:
        _sum_of(entry, sums).add(visible(entry, hidden) if hidden else entry)
    for entry in points:
        _sum_of(entry, sums).add_points(visible(entry, hidden) if hidden else entry)
    return sorted(sums.values(), key=_place)


def _sum_of(entry: StreamEntry, sums: dict[str, StreamSum]) -> StreamSum:
    known = sums.get(entry.stream_id)
    if known is None:
        known = sums[entry.stream_id] = StreamSum(entry.stream, entry.stream_id)
    return known


def _place(item: StreamSum) -> tuple[Any, ...]:
    stream = item.stream
    rank = -1 if stream.rank is None else stream.rank
    names = (stream.host or "", stream.channel, item.stream_id)
    return (stream.run, stream.launch, stream.attempt, rank, *names)


@dataclass(frozen=True, slots=True)
class Told:
    """What the processes of a launch said of it; `ranks`: who said something, by attempt."""

    manifest: Mapping[str, Any] = field(default_factory=dict)
    ranks: Mapping[int, frozenset[int]] = field(default_factory=dict)


def run_rows(
    entries: Iterable[StreamEntry],
    now_ns: int,
    skipped: Sequence[dict[str, Any]] = (),
    told: Mapping[str, Told] | None = None,
    points: Iterable[StreamEntry] = (),
    gone: Gone = NOTHING,
) -> list[dict[str, Any]]:
    """One object per launch, newest first. `told`: by run_id; `points`: entries of indexes of points;
    `gone`: what was deleted, which no row counts."""
    launches: dict[str, list[StreamSum]] = {}
    for item in sum_streams(entries, points, gone):
        launches.setdefault(item.stream.run_id, []).append(item)
    rows = [
        _run_row(sums, now_ns, skipped, (told or {}).get(run_id, Told()), gone)
        for run_id, sums in launches.items()
    ]
    return sorted(rows, key=lambda row: (row["first_ns"] or 0, row["run_id"]), reverse=True)


def _run_row(
    sums: Sequence[StreamSum],
    now_ns: int,
    skipped: Sequence[dict[str, Any]],
    told: Told,
    gone: Gone,
) -> dict[str, Any]:
    stream = sums[0].stream
    entries = [entry for item in sums for entry in item.entries]
    first, last = _extent(sums)
    manifest, gone = told.manifest, replace(gone, run_ids=frozenset([stream.run_id]))
    sizes = [manifest.get("world_size"), *(item.stream.world_size for item in sums)]
    declared = {
        (stream.run, stream.launch, attempt): ranks for attempt, ranks in told.ranks.items()
    }
    hosts = {item.stream.rank: item.stream.host for item in sums if item.stream.rank is not None}
    return {
        "run": stream.run,
        "run_id": stream.run_id,
        "state": _state(sums, last, now_ns),
        "attempts": _attempts(sums),
        "world_size": max((size or 0 for size in sizes), default=0) or None,
        "ranks": sorted({rank for item in sums for rank in _ranks(item)}),
        "first_ns": first,
        "first": None if first is None else render_time(first),
        "last_ns": last,
        "last": None if last is None else render_time(last),
        "last_iteration": max(
            (i for item in sums if (i := item.last_iteration) is not None), default=None
        ),
        "lines": sum(item.lines for item in sums),
        "points": sum(item.points for item in sums),
        "bytes": sum(item.text_bytes for item in sums),
        "hosts": sorted({item.stream.host for item in sums if item.stream.host}),
        "owner": manifest.get("owner"),
        "tags": dict(manifest.get("tags", {})),
        "topology": topology(manifest, hosts),
        "config": flatten(manifest.get("config", {})) if manifest.get("config") else {},
        "completeness": completeness_json(judge(entries, Window(), skipped, declared, gone)),
    }


def _ranks(item: StreamSum) -> set[int]:
    """Ranks that speak in a stream: its own, and those of its lines' contexts."""
    others = {rank for entry in item.entries for rank, _ in entry.ranks if rank >= 0}
    if item.stream.rank is None or not any(_says_anything(entry) for entry in item.entries):
        return others
    return others | {item.stream.rank}


def _says_anything(entry: StreamEntry) -> bool:
    """Whether more than a manifest names the stream."""
    return bool(entry.ranges or entry.fences or entry.drops or entry.end)


def _attempts(sums: Sequence[StreamSum]) -> list[dict[str, Any]]:
    attempts: dict[int, list[StreamSum]] = {}
    for item in sums:
        attempts.setdefault(item.stream.attempt, []).append(item)
    rows = []
    for attempt, items in sorted(attempts.items()):
        first, last = _extent(items)
        rows.append(
            {
                "attempt": attempt,
                "first_ns": first,
                "first": None if first is None else render_time(first),
                "last_ns": last,
                "last": None if last is None else render_time(last),
                "exit_code": _exit_code(items),
            }
        )
    return rows


def _exit_code(sums: Sequence[StreamSum]) -> int | None:
    """The first that is not 0; 0 when all that are known are; None when none is."""
    codes = [item.end.exit_code for item in sums if item.end is not None]
    known = [code for code in codes if code is not None]
    return next((code for code in known if code), 0 if known else None)


def _state(sums: Sequence[StreamSum], last_ns: int | None, now_ns: int) -> str:
    """running | finished | failed | silent | unknown, of the last attempt."""
    newest = max(item.stream.attempt for item in sums)
    items = [item for item in sums if item.stream.attempt == newest]
    code = _exit_code(items)
    if all(item.end is not None for item in items):
        if code is None:
            return "unknown"  # imported files: they end, and nobody says how
        return "failed" if code else "finished"
    if code:
        return "failed"
    if last_ns is None:
        return "unknown"
    return "running" if now_ns - last_ns < SILENT_AFTER_NS else "silent"


def stream_rows(
    entries: Iterable[StreamEntry],
    skipped: Sequence[dict[str, Any]] = (),
    gone: Gone = NOTHING,
) -> list[dict[str, Any]]:
    """One object per stream. `gone`: what was deleted, which does not count."""
    return [
        {
            "stream": item.stream_id,
            "run": item.stream.run,
            "run_id": item.stream.run_id,
            "attempt": item.stream.attempt,
            "rank": item.stream.rank,
            "local_rank": item.stream.local_rank,
            "host": item.stream.host,
            "channel": item.stream.channel,
            "kind": item.stream.kind,
            "copy": item.stream.copy,
            "source": item.stream.source,
            "lines": item.lines,
            "bytes": item.text_bytes,
            "first_ns": item.first_ns,
            "first": None if item.first_ns is None else render_time(item.first_ns),
            "last_ns": item.last_ns,
            "last": None if item.last_ns is None else render_time(item.last_ns),
            "last_iteration": item.last_iteration,
            "alive_ns": max(
                (ns for e in item.entries if (ns := e.alive_ns) is not None), default=None
            ),
            "ended": item.end is not None,
            "exit_code": None if item.end is None else item.end.exit_code,
            "completeness": _stream_completeness(item, skipped, gone),
        }
        for item in sum_streams(entries, (), gone)
    ]


def _stream_completeness(
    item: StreamSum, skipped: Sequence[dict[str, Any]], gone: Gone
) -> dict[str, Any]:
    """As if the stream were alone: ranks of others are not its concern."""
    judged = judge(item.entries, Window(), skipped, gone=gone)
    judged.deleted = [one for one in judged.deleted if one["stream"] == item.stream_id]
    judged.absent = []
    if judged.state == "behind" and not judged.behind:
        judged.state = "complete"
    return completeness_json(judged)


def _extent(sums: Sequence[StreamSum]) -> tuple[int | None, int | None]:
    first = min((item.first_ns for item in sums if item.first_ns is not None), default=None)
    last = max((item.last_ns for item in sums if item.last_ns is not None), default=None)
    return first, last


def _least(known: int | None, value: int | None) -> int | None:
    return value if known is None or (value is not None and value < known) else known


def _most(known: int | None, value: int | None) -> int | None:
    return value if known is None or (value is not None and value > known) else known
