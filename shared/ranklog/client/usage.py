"""What a tenant stores, by run and by day, from its indexes and the lengths of its objects."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ranklog.client.reader import Reader
from ranklog.client.scope import open_scope
from ranklog.layout import keys
from ranklog.layout.index import SegmentIndex
from ranklog.model import query as q
from ranklog.model.answer import Report


@dataclass(slots=True)
class RunUsage:
    """One launch. `stored_bytes`: its share, by rows, of the segments that it is in."""

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
    runs: defaultdict[str, RunUsage] = defaultdict(RunUsage)
    _add(runs, scope.indexes, points=False)
    _add(runs, scope.points, points=True)
    usage.runs = dict(sorted(runs.items()))
    return usage


def _add(
    runs: defaultdict[str, RunUsage], indexes: Mapping[int, SegmentIndex], *, points: bool
) -> None:
    for index in indexes.values():
        head = index.head
        length = 0 if head.segment is None else head.segment.length
        rows = sum(entry.lines for entry in head.streams)
        for entry in head.streams:
            run = runs[f"{entry.stream.run}@{entry.stream.launch}"]
            if points:
                run.points += entry.lines
            else:
                run.lines += entry.lines
                run.text_bytes += entry.text_bytes
            run.stored_bytes += length * entry.lines / rows if rows else 0.0
