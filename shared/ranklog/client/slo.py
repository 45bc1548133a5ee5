"""`slo`: a tenant's objectives over a period, from what ranklog measured and from what the indexes say."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ranklog.answer.render import render_time
from ranklog.answer.stream_state import stream_states
from ranklog.client.reader import Reader
from ranklog.client.scope import Scope, open_scope
from ranklog.layout import keys
from ranklog.layout.index import SegmentIndex
from ranklog.limits import HOUR_NS
from ranklog.model.answer import Completeness, Report
from ranklog.model.query import Everything, Query
from ranklog.objectives import names
from ranklog.objectives.judge import Stored, Verdict, judge
from ranklog.objectives.keeping import read_measures
from ranklog.objectives.measures import Measures
from ranklog.objectives.targets import load_targets
from ranklog.plan.overlap import Ranges, difference, union

# Without bounds: what a month's report wants.
PERIOD_NS = 30 * 24 * HOUR_NS


@dataclass(slots=True)
class SloAnswer:
    """`from_ns`: from where on measures are in it, at most an hour before what was asked for."""

    from_ns: int
    to_ns: int
    objectives: list[dict[str, Any]]
    stored: dict[str, int]
    counts: dict[str, int]
    unread: list[dict[str, str]] = field(default_factory=list)

    @property
    def missed(self) -> bool:
        """Whether an objective is not met."""
        return any(item["met"] is False for item in self.objectives)

    @property
    def measured(self) -> bool:
        """Whether there was anything to judge."""
        return any(item["met"] is not None for item in self.objectives)

    def to_json(self) -> dict[str, Any]:
        return {
            "objectives": self.objectives,
            "stored": self.stored,
            "counts": self.counts,
            "unread": self.unread,
            "period": {
                "from_ns": self.from_ns,
                "to_ns": self.to_ns,
                "from": render_time(self.from_ns),
                "to": render_time(self.to_ns),
            },
        }


def answer_slo(reader: Reader, query: Query) -> SloAnswer:
    """Objectives over the query's time, a month up to now without one.

    Reads the tenant's measures and every index of these hours (GET where it is not cached), and lists their
    segments. Raises what the store raises, Corrupt, NewerVersion.
    """
    to_ns = reader.now_ns() if query.until_ns is None else query.until_ns
    from_ns = max(0, to_ns - PERIOD_NS) if query.since_ns is None else query.since_ns
    targets = load_targets(reader.store, reader.tenant)
    measures, begins_ns = read_measures(reader.store, reader.tenant, from_ns, to_ns)
    stored, unread = stored_lines(reader, from_ns, to_ns)
    verdicts = judge(measures, stored, targets)
    return answer_of(verdicts, stored, measures, unread, (begins_ns, to_ns))


def answer_of(
    verdicts: Iterable[Verdict],
    stored: Stored,
    measures: Measures,
    unread: list[dict[str, str]],
    period: tuple[int, int],
) -> SloAnswer:
    """What was judged, to be told."""
    counts = {name: measures.counts[name] for name in names.BY_NAME if measures.counts[name]}
    told = [verdict.to_json() for verdict in verdicts]
    return SloAnswer(*period, told, stored.to_json(), counts, unread)


def read_slo(said: dict[str, Any]) -> SloAnswer:
    """Inverse of `to_json`. Raises KeyError."""
    period = said["period"]
    return SloAnswer(
        period["from_ns"],
        period["to_ns"],
        said["objectives"],
        said["stored"],
        said["counts"],
        said["unread"],
    )


def stored_lines(reader: Reader, from_ns: int, to_ns: int) -> tuple[Stored, list[dict[str, str]]]:
    """Lines and records of telemetry of the hours that [from_ns, to_ns) touches, and indexes that can't be
    read.

    What is missing is what completeness calls gaps. It is lost where later lines of the same stream are
    stored: an agent sends, and is acknowledged, in order. So are lines whose segment is gone.
    """
    # before the indexes: compaction deletes an index before its segment
    segments = _segments(reader, from_ns)
    asked = Query(Everything(), since_ns=from_ns // HOUR_NS * HOUR_NS, until_ns=to_ns)
    scope = open_scope(reader, asked, None, Report(), points=True)
    judged = scope.judged
    states = stream_states(scope.entries())
    found = _ranges(scope, segments, reader)
    gone = sum(_size(difference(lines, found.present[name])) for name, lines in found.all.items())
    missing, lost = _missing(judged, {name: state.reached for name, state in states.items()})
    stored = Stored(
        lines=sum(_size(lines) for lines in found.all.values()) - gone,
        deleted=sum(item["lines"] for item in judged.deleted),
        missing=missing + gone,
        lost=lost + gone,
        dropped=sum(item["lines"] for item in judged.dropped),
        streams=judged.streams,
        streams_behind=len(judged.behind),
    )
    return stored, list(scope.failed)


@dataclass(slots=True)
class _Found:
    """Seq ranges by stream_id, without what was deleted: of all indexes, and of those whose segment is
    there."""

    all: dict[str, Ranges]
    present: defaultdict[str, Ranges]


def _ranges(scope: Scope, segments: frozenset[str], reader: Reader) -> _Found:
    every: defaultdict[str, Ranges] = defaultdict(list)
    present: defaultdict[str, Ranges] = defaultdict(list)
    deleted: dict[str, Ranges] = {}
    for index in (*scope.indexes.values(), *scope.points.values()):
        is_there = _is_there(index, segments, reader)
        for entry in index.head.streams:
            deleted[entry.stream_id] = scope.tombstones.hidden(entry)
            every[entry.stream_id] += entry.ranges
            if is_there:
                present[entry.stream_id] += entry.ranges
    left = {name: difference(union(ranges), deleted[name]) for name, ranges in every.items()}
    kept = {name: union(ranges) for name, ranges in present.items()}
    return _Found(left, defaultdict(list, kept))


def _is_there(index: SegmentIndex, segments: frozenset[str], reader: Reader) -> bool:
    """Whether the segment is; one that was merged away meanwhile went after its index."""
    segment = index.head.segment
    if segment is None or segment.key in segments:
        return True
    listed = {info.key for info in reader.store.list(segment.key)}
    return segment.key in listed or not any(
        info.key == index.key for info in reader.store.list(index.key)
    )


def _segments(reader: Reader, from_ns: int) -> frozenset[str]:
    """Keys of segments from the day of `from_ns` on, late ones too."""
    prefix = keys.data_prefix(reader.tenant)
    start = prefix + keys.day_text(max(0, from_ns))
    return frozenset(info.key for info in reader.store.list(prefix, start_after=start))


def _missing(judged: Completeness, reached: dict[str, int]) -> tuple[int, int]:
    """(lines that are missing, those of them before a line that is stored)."""
    missing = lost = 0
    for gap in judged.gaps:
        first, end = gap["first_seq"], gap["last_seq"] + 1
        missing += end - first
        lost += max(0, min(end, reached.get(gap["stream"], 0)) - first)
    return missing, lost


def _size(ranges: Sequence[tuple[int, int]]) -> int:
    return sum(end - first for first, end in ranges)
