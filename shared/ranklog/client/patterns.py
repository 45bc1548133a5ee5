"""Templates of what matches, with an example each, and whether an earlier run had them.

Segments of which every row is in scope are counted by their index; only the others are scanned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ranklog.answer.render import line_json, render_time
from ranklog.client.answer import Listing
from ranklog.client.earlier import earlier_run
from ranklog.client.reader import Reader
from ranklog.client.search import Search, begin
from ranklog.layout import schema
from ranklog.layout.index import SegmentIndex
from ranklog.merge.lines import LineMerge, line_rank
from ranklog.model import query as q
from ranklog.model.answer import Line
from ranklog.model.index import SiteCount
from ranklog.plan.build import Plan
from ranklog.plan.segments import Kept, plan_scan
from ranklog.plan.tasks import Groups, Lines, Outcome, SegmentScan, Task
from ranklog.plan.tree import all_of
from ranklog.spmd.patterns import Pattern, Patterns

_KEYS = (schema.STREAM, schema.RANK, schema.TID)


def list_patterns(
    reader: Reader, query: q.Query, *, with_: str | None = None, limit: int | None = None
) -> Listing:
    """One row per template, largest first, `limit` of them. Console copies are left out.

    `with_`: an earlier run (`NAME`, `~1`): `new` tells whether it never said it; None where nobody
    can tell.
    """
    run = begin(reader, query)
    expr = _without_copies(run)
    patterns, counted = _collect(run, expr)
    found = patterns.largest_first()
    shown = found[:limit]
    if len(shown) < len(found):
        run.report.notes.append(
            f"{len(found) - len(shown)} more patterns: a higher limit shows them"
        )
    before = None if with_ is None else _Before(reader, query, run, with_)
    examples = _examples(run, expr, shown, counted)
    rows = [
        pattern.to_json(
            render_time,
            None if line is None else line_json(line),
            None if before is None else before.lacks(pattern.template),
        )
        for pattern in shown
        for line in (examples.get(pattern.template),)
    ]
    return Listing(rows, run.completeness(), run.report)


def _without_copies(run: Search) -> q.Expr:
    copies = q.Field("copy", ":", (q.Exact("true"),))
    return all_of([run.expr(), q.Not(copies)])


def _collect(run: Search, expr: q.Expr) -> tuple[Patterns, set[int]]:
    """Sums of what matches, and the segments that their indexes alone counted."""
    patterns = Patterns()
    plan = run.plan(expr, Groups(_KEYS, extent=True))
    whole = [scan for scan in plan.scans if _is_whole(scan)]
    plan.scans = [scan for scan in plan.scans if not _is_whole(scan)]
    for scan in whole:
        index = run.scope.indexes[scan.number]
        patterns.add(scan.number, run.sites_of(index), index.templates)
    for wave in run.outcomes(plan):
        for _, outcome in wave:
            for number, count in _counts(run, outcome):
                patterns.add(number, [count], run.scope.indexes[number].templates)
    if whole and not plan.scans:
        run.report.notes.append("from indexes alone")
    return patterns, {scan.number for scan in whole}


def _is_whole(scan: SegmentScan) -> bool:
    """Whether every row of the segment matches and no other segment answers for one."""
    return scan.certain and scan.rows is None and scan.tids is None and not scan.skip


def _counts(run: Search, outcome: Outcome) -> Iterator[tuple[int, SiteCount]]:
    """Groups of an outcome as the counts an index would hold."""
    columns = outcome.columns
    for i, number in enumerate(columns.get("segment", ())):
        entry = run.scope.indexes[number].head.streams[columns[schema.STREAM][i]]
        rank = line_rank(entry.stream.rank, columns[schema.RANK][i])
        count = columns["count"][i]
        yield (
            number,
            SiteCount(
                call_site=None,
                function=None,
                logger=None,
                level=None,
                tid=columns[schema.TID][i],
                count=count,
                text_bytes=columns["bytes"][i],
                min_ts=columns["first_ns"][i],
                max_ts=columns["last_ns"][i],
                ranks=((schema.NO_RANK if rank is None else rank, count),),
            ),
        )


# --- examples -----------------------------------------------------------------------------------
def _examples(
    run: Search, expr: q.Expr, patterns: Sequence[Pattern], counted: set[int]
) -> dict[str | None, Line]:
    """The first line of each pattern, by template."""
    counted = {number for number in counted if _is_by_time(run.scope.indexes[number])}
    by_segment: dict[int, list[Pattern]] = {}
    for pattern in patterns:
        by_segment.setdefault(pattern.first[1], []).append(pattern)
    tasks = [
        _first_rows(run, number, found) for number, found in by_segment.items() if number in counted
    ]
    rest = {number: found for number, found in by_segment.items() if number not in counted}
    if rest:
        shape = Lines(limit=None)
        pruned = replace(run.report)
        plan = run.plan(expr, shape)
        run.report.row_groups_pruned = pruned.row_groups_pruned
        scans = {scan.number: scan for scan in plan.scans}
        tasks += [_first_times(run, plan, scans[number], found) for number, found in rest.items()]
    merge = LineMerge(run.scope.indexes, limit=None, newest=False)
    for task, outcome in zip(tasks, run.reader.run(tasks), strict=True):
        run.note(task, outcome)
        merge.add(outcome)
    wanted = {pattern.template: pattern.first[0] for pattern in patterns}
    examples: dict[str | None, Line] = {}
    for line in merge.lines():
        if wanted.get(line.template) == line.ts_ns:
            examples.setdefault(line.template, line)
    return examples


def _is_by_time(index: SegmentIndex) -> bool:
    """Whether rows of a template are in order of time: lines with ranks of their own may not be."""
    return not any(entry.ranks for entry in index.head.streams)


def _first_rows(run: Search, number: int, patterns: Iterable[Pattern]) -> Task:
    """By row: in a segment, a template's first row is its earliest."""
    index = run.scope.indexes[number]
    first: dict[int, int] = {}
    for rows in index.template_rows:
        first.setdefault(rows.tid, rows.first_row)
    wanted = tuple((row, row + 1) for row in sorted(first[pattern.tid] for pattern in patterns))
    kept = Kept(_row_groups(index, [row for row, _ in wanted]), certain=True)
    scan = plan_scan(number, index, kept, q.Everything(), Lines(limit=None))
    scan = replace(scan, rows=wanted)
    return Task(q.Everything(), (scan,), Lines(limit=None), (), run.reader.deadline_s)


def _row_groups(index: SegmentIndex, rows: Sequence[int]) -> list[int]:
    groups = enumerate(index.head.row_groups)
    return [
        at
        for at, group in groups
        if any(group.first_row <= row < group.first_row + group.rows for row in rows)
    ]


def _first_times(run: Search, plan: Plan, scan: SegmentScan, patterns: Sequence[Pattern]) -> Task:
    """By template and time, where only a scan knows what matches."""
    times = sorted({pattern.first[0] for pattern in patterns})
    moment = q.Field("time", ":", tuple(q.Range(ts, ts + 1) for ts in times))
    scan = replace(scan, tids=tuple(sorted(p.tid for p in patterns)), certain=False)
    expr = q.And((plan.expr, moment))  # type: ignore[arg-type]
    return Task(expr, (scan,), plan.shape, plan.near, run.reader.deadline_s)


# --- against an earlier run ---------------------------------------------------------------------
class _Before:
    """What an earlier run said, whatever the query is."""

    def __init__(self, reader: Reader, query: q.Query, run: Search, with_: str) -> None:
        selector = earlier_run(reader, query.run, run.scope.launches, with_)
        self._run = begin(reader, q.Query(q.Everything(), run=selector))
        self._said, _ = _collect(self._run, _without_copies(self._run))
        names = ", ".join(self._run.scope.run_ids)
        run.report.notes.append(f"new against {names}")
        self._failed = bool(self._run.skipped())
        if self._failed:
            run.report.notes.append(f"parts of {names} could not be read: new is not known of all")
        lost = self._said.without_template()
        if lost:
            run.report.notes.append(f"{lost} lines of {names} have no template to compare with")

    def lacks(self, template: str | None) -> bool | None:
        """Whether it never said it; None: what could not be read may have."""
        if template is None:
            return None
        if template in self._said:
            return False
        return None if self._failed else True
