"""Delete what matches a query, or a launch whole: find the rows, log who does it, write the tombstone.

What matches now is deleted, wherever it is stored and whenever it comes again; a line that arrives for the
first time after this is another line, and stays unless its launch was deleted whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from ranklog import limits
from ranklog.client.reader import Reader
from ranklog.client.search import Search, begin
from ranklog.delete.actions import Action, record_action
from ranklog.delete.tombstones import put_tombstone
from ranklog.errors import BadInput, TooLarge, Unavailable
from ranklog.limits import HOUR_NS
from ranklog.model import query as q
from ranklog.model.answer import Completeness, Report
from ranklog.model.index import StreamEntry
from ranklog.model.tombstone import LAUNCH, LINES, Deleted, Tombstone
from ranklog.plan.overlap import difference, union
from ranklog.plan.render import render_expr


@dataclass(slots=True)
class Deletion:
    """What a deletion is about; `key` is its tombstone's once it is done."""

    tombstone: Tombstone
    run_ids: list[str]
    completeness: Completeness
    report: Report
    key: str | None = None

    @property
    def lines(self) -> int:
        return self.tombstone.lines

    def rows(self) -> list[dict[str, Any]]:
        """One object per stream: how much of it."""
        found: dict[str, dict[str, Any]] = {}
        for item in self.tombstone.rows:
            row = {
                "run_id": item.run_id,
                "attempt": item.attempt,
                "rank": item.rank,
                "stream": item.stream_id,
                "lines": 0,
            }
            found.setdefault(item.stream_id, row)["lines"] += item.lines
        return sorted(
            found.values(),
            key=lambda row: (row["run_id"], row["attempt"], row["rank"] or 0, row["stream"]),
        )


def find_deletion(
    reader: Reader, query: q.Query, *, who: str, why: str = "", groups: bool = False
) -> Deletion:
    """What a deletion would take; nothing is written. `groups`: with each match the rest of its group.
    Raises BadInput, TooLarge, and Unavailable where not all could be read."""
    whole = _is_whole(query)
    run = begin(reader, query, points=whole)
    if run.report.defaulted:
        raise BadInput("a deletion of what hours?", hint="say --run NAME, or --since and --until")
    if whole:
        rows = _all_of_launches(run)
    else:
        rows = _found_rows(run, groups=groups)
    if skipped := run.skipped():
        key, why_not = skipped[0]["segment"], skipped[0]["reason"]
        raise Unavailable(
            f"not all could be read, so nothing is deleted: {key}: {why_not}", hint="try again"
        )
    launches = run.scope.launches if whole else None
    tombstone = Tombstone(
        LAUNCH if whole else LINES,
        reader.now_ns(),
        who,
        why,
        render_expr(query.expr),
        tuple((one.run, one.launch) for one in launches or ()),
        tuple(rows),
    )
    run_ids = run.scope.run_ids or sorted({item.run_id for item in rows})
    return Deletion(tombstone, run_ids, run.completeness(), run.report)


def delete(reader: Reader, found: Deletion) -> Deletion:
    """Do it: from here on no answer shows the rows. The log of actions has it first."""
    tombstone = found.tombstone
    if not tombstone.rows and not tombstone.launches:
        return found
    details = {
        "query": tombstone.query,
        "kind": tombstone.kind,
        "runs": found.run_ids,
        "lines": tombstone.lines,
        "streams": len({item.stream_id for item in tombstone.rows}),
    }
    action = Action("delete", tombstone.when_ns, tombstone.who, tombstone.why, details)
    record_action(reader.store, reader.tenant, action)
    return replace(found, key=put_tombstone(reader.store, reader.tenant, tombstone))


def _is_whole(query: q.Query) -> bool:
    """Whether a launch is meant, and nothing restricts it."""
    bounded = (query.since_ns, query.until_ns, query.last_ns) != (None, None, None)
    return query.run is not None and isinstance(query.expr, q.Everything) and not bounded


# --- a launch -----------------------------------------------------------------------------------
def _all_of_launches(run: Search) -> list[Deleted]:
    """What the launches in scope have now, from the indexes alone."""
    hidden = run.scope.tombstones
    found: dict[tuple[str, int | None], tuple[StreamEntry, list[tuple[int, int]]]] = {}
    for entry in run.scope.entries():
        left = difference(entry.ranges, hidden.streams.get(entry.stream_id, ()))
        if left:
            key = (entry.stream_id, _hour_of(entry))
            found.setdefault(key, (entry, []))[1].extend(left)
    rows = []
    for (_, hour), (entry, ranges) in sorted(found.items(), key=lambda item: str(item[0])):
        once = union(ranges)
        rows.append(_deleted(entry, hour, once))
    return rows


def _hour_of(entry: StreamEntry) -> int | None:
    if entry.min_ts is None or entry.max_ts is None:
        return None
    low, high = entry.min_ts // HOUR_NS, entry.max_ts // HOUR_NS
    return low if low == high else None


def _deleted(entry: StreamEntry, hour: int | None, ranges: list[tuple[int, int]]) -> Deleted:
    stream = entry.stream
    lines = sum(end - first for first, end in ranges)
    names = (entry.stream_id, stream.run, stream.launch, stream.attempt, stream.rank)
    return Deleted(*names, hour, lines, tuple(ranges))


# --- rows that match ----------------------------------------------------------------------------
def _found_rows(run: Search, *, groups: bool) -> list[Deleted]:
    """Matching rows by stream and hour."""
    from ranklog.client.row_ranges import find_ranges

    entries = {entry.stream_id: entry for entry in run.scope.entries()}
    return [
        _deleted(entries[stream_id], hour, ranges)
        for stream_id, hour, ranges in _bounded(find_ranges(run, groups=groups))
    ]


def _bounded(
    found: Iterator[tuple[str, int, list[tuple[int, int]]]],
) -> Iterator[tuple[str, int, list[tuple[int, int]]]]:
    """The same. Raises TooLarge where a tombstone would have too many ranges."""
    total = 0
    for item in found:
        total += len(item[2])
        if total > limits.TOMBSTONE_RANGES_MAX:
            raise TooLarge(
                f"the matches are in more than {limits.TOMBSTONE_RANGES_MAX:,} places",
                hint="delete whole ranks, hours or runs, or a part of them at a time",
            )
        yield item
