"""What a tenant stores, by run and by day, from its indexes and the lengths of its objects."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ranklog.answer.runs import sum_streams
from ranklog.client.reader import Reader
from ranklog.client.scope import Scope, open_scope
from ranklog.layout import keys
from ranklog.layout.index import SegmentIndex
from ranklog.model import query as q
from ranklog.model.answer import Report
from ranklog.model.index import StreamEntry


@dataclass(slots=True)
class RunUsage:
    """One launch: lines, points and text that answers have; `stored_bytes`: its share, by rows, of the
    segments that it is in."""

    lines: int = 0
    points: int = 0
    text_bytes: int = 0
    stored_bytes: float = 0.0

    def to_json(self, run_id: str) -> dict[str, Any]:
        return {
            "run_id": run_id,
            "lines": self.lines,
            "points": self.points,
            "text_bytes": self.text_bytes,
            "stored_bytes": round(self.stored_bytes),
        }


@dataclass(slots=True)
class StoredUsage:
    """Bytes of all objects by what they are (data, index, …), of segments and indexes by event day
    (`late`: those that share objects by day of arrival), and launches. `waiting`: frames over the quota;
    `quarantined`: frames that can't be stored, and those that were since."""

    bytes_by_kind: Counter[str] = field(default_factory=Counter)
    bytes_by_day: Counter[str] = field(default_factory=Counter)
    objects: int = 0
    waiting: int = 0
    quarantined: int = 0
    runs: dict[str, RunUsage] = field(default_factory=dict)


def stored_usage(reader: Reader, query: q.Query) -> StoredUsage:
    """One LIST of the tenant, and the indexes in the query's scope. Raises what the store raises."""
    usage = StoredUsage()
    prefix = keys.tenant_prefix(reader.tenant)
    for info in reader.store.list(prefix):
        kind, _, rest = info.key.removeprefix(prefix).partition("/")
        usage.objects += 1
        usage.bytes_by_kind[kind] += info.length
        usage.waiting += kind == "waiting"
        usage.quarantined += kind == "quarantine" and not info.key.endswith(".json")
        if kind in ("data", "index"):
            usage.bytes_by_day[rest.partition("/")[0]] += info.length
    scope = open_scope(reader, query, None, Report(), points=True)
    usage.runs = _by_run(scope)
    return usage


def _by_run(scope: Scope) -> dict[str, RunUsage]:
    """What was stored twice counts once, but for `stored_bytes`."""
    runs: defaultdict[str, RunUsage] = defaultdict(RunUsage)
    points = _entries(scope, scope.points)
    for item in sum_streams(_entries(scope, scope.indexes), points, scope.gone()):
        run = runs[item.stream.run_id]
        run.lines += item.lines
        run.points += item.points
        run.text_bytes += item.line_text_bytes
    for index in (*scope.indexes.values(), *scope.points.values()):
        length = 0 if index.head.segment is None else index.head.segment.length
        rows = sum(entry.lines for entry in index.head.streams)
        for entry in filter(scope.holds, index.head.streams):
            share = entry.lines / rows if rows else 0.0
            runs[entry.stream.run_id].stored_bytes += length * share
    return dict(sorted(runs.items()))


def _entries(scope: Scope, indexes: Mapping[int, SegmentIndex]) -> list[StreamEntry]:
    return [e for index in indexes.values() for e in index.head.streams if scope.holds(e)]
