"""The read path: list, load, prune, pack, scatter, merge, answer.

open_scope   which launches and hours; LIST and load their indexes    (client/scope)
resolve      answer the inner queries of near() and spike()           (client/joins)
build_plan   what might match, per segment                            (plan/build)
pack         scans into tasks                                         (plan/pack)
run          tasks out, outcomes back, in waves, until the limit      (scan/scatter)
LineMerge    order, each line once, cut                               (merge/lines)
neighbours   the match's group and context                            (client/neighbours)
judge        how complete it is                                       (answer/completeness)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from ranklog import limits
from ranklog.client.answer import Answer, CountAnswer
from ranklog.client.cursor import Cursor, parse_cursor, query_hash
from ranklog.client.garbage import collector_waits
from ranklog.client.joins import resolve_joins
from ranklog.client.lineage import lineage_place, mark_superseded
from ranklog.client.neighbours import with_neighbours
from ranklog.client.pins import Pin, open_pinned, save_pin
from ranklog.client.reader import Reader
from ranklog.client.results import place_of
from ranklog.client.resume import Progress, cut_safely, is_too_many, next_progress, segment_name
from ranklog.client.scope import Scope, fill_report, open_scope
from ranklog.client.spiked import joins_points
from ranklog.client.warn import check_patterns, note_copies, warn_unknown_keys
from ranklog.errors import BadQuery, Corrupt
from ranklog.layout.index import SegmentIndex
from ranklog.merge.lines import LineMerge
from ranklog.model import query as q
from ranklog.model.answer import Completeness, Line, Report
from ranklog.model.index import SiteCount
from ranklog.plan.build import Plan, PlanOptions, build_plan
from ranklog.plan.pack import pack
from ranklog.plan.render import render_expr
from ranklog.plan.segments import scan_bytes
from ranklog.plan.tasks import AnyTask, Groups, Lines, Outcome, SegmentFailure, SegmentScan, Task
from ranklog.plan.tree import all_of

_FIRST_WAVE_TASKS = 4

A = TypeVar("A", Answer, CountAnswer)


@dataclass(slots=True)
class Search:
    """One query on its way: what it covers, what it cost, what could not be read.

    `ends_s`: when its time is over, by time.monotonic(); `late`: segments there was no time for.
    """

    reader: Reader
    query: q.Query
    scope: Scope
    report: Report
    failed: list[dict[str, str]] = field(default_factory=list)
    ends_s: float | None = None
    late: set[int] = field(default_factory=set)
    pinned: bool = False

    def expr(self) -> q.Expr:
        """The query's terms inside the scope, joins answered, what it mutes left out."""
        terms = [*self.scope.restriction(), resolve_joins(self, self.query.expr)]
        if self.query.mute_common:
            from ranklog.client.muting import muted_terms

            terms += muted_terms(self)
        return all_of(terms)

    def plan(
        self,
        expr: q.Expr,
        shape: Lines | Groups,
        after: Any = None,
        count_by: tuple[str, ...] | None = None,
        count_every_ns: int | None = None,
    ) -> Plan:
        """Prune; counts go into the report."""
        options = PlanOptions(
            self.query.full_scan, self.query.explain, after, count_by, count_every_ns
        )
        with timed(self.report, "plan"), collector_waits():
            plan = build_plan(
                expr,
                shape,
                self.scope.indexes,
                self.scope.skips,
                self.reader.regexes,
                options,
            )
        self.failed += plan.failed
        report = self.report
        report.segments_listed = plan.segments_listed
        report.segments_pruned = plan.segments_pruned
        report.row_groups_total = plan.row_groups_total
        report.row_groups_pruned = plan.row_groups_pruned
        return plan

    def sites_of(self, index: SegmentIndex) -> Sequence[SiteCount]:
        """Call sites that the index counts; none where it contradicts itself, which the answer says."""
        try:
            return index.sites
        except Corrupt as error:
            self.failed.append({"segment": index.key, "reason": error.message})
            return ()

    def outcomes(
        self, plan: Plan, newest: bool | None = None
    ) -> Iterator[list[tuple[Task, Outcome]]]:
        """Tasks with their outcomes, wave by wave; the first wave is small, a limit is often met in it."""
        tasks = self.tasks(plan, newest)
        at, width = 0, len(tasks)
        if newest is not None:
            width = 1 if self._is_enough(tasks, plan.shape) else _FIRST_WAVE_TASKS
        while at < len(tasks):
            wave = tasks[at : at + width]
            with timed(self.report, "scan"):
                found = list(zip(wave, self.reader.run(wave, self.ends_s), strict=True))
            for task, outcome in found:
                self.note(task, outcome)
            yield found
            at, width = at + width, min(4 * width, limits.SCATTER_CONCURRENCY_MAX)

    def _is_enough(self, tasks: Sequence[Task], shape: Lines | Groups) -> bool:
        """Whether the first segment alone has as many lines that match for sure as are wanted."""
        if not tasks or not isinstance(shape, Lines) or shape.limit is None:
            return False
        first = tasks[0].segments[0]
        if not first.certain or first.skip or first.after is not None:
            return False
        rows = self.scope.indexes[first.number].head.rows
        found = rows if first.rows is None else sum(end - start for start, end in first.rows)
        return found >= shape.limit

    def tasks(self, plan: Plan, newest: bool | None) -> list[Task]:
        """The plan's scans in tasks."""
        packed = pack(plan.scans, concurrency=self.reader.concurrency, newest=newest)
        return [Task(plan.expr, scans, plan.shape, plan.near) for scans in packed]

    def note(self, task: AnyTask, outcome: Outcome) -> None:
        """Count what an outcome cost; remember what it could not read."""
        self.report.bytes_read += outcome.bytes_read
        self.report.segments_scanned += outcome.scanned
        self.report.row_groups_scanned += sum(self._row_groups(scan) for scan in task.segments)
        self.failed += [_failure(failure) for failure in outcome.failed]
        self.late |= {failure.number for failure in outcome.failed if failure.late}

    def _row_groups(self, scan: SegmentScan) -> int:
        index = self.scope.indexes.get(scan.number) or self.scope.points[scan.number]
        groups = index.head.row_groups
        if scan.rows is None:
            return len(groups)
        if scan.records:
            return sum(
                any(a < group.first_row + group.rows and b > group.first_row for a, b in scan.rows)
                for group in groups
            )
        return sum(any(a <= group.first_row < b for a, b in scan.rows) for group in groups)

    def known(self, place: Hashable) -> Answer | CountAnswer | None:
        """The answer, if it was given before and nothing is new."""
        results = self.reader.results
        return None if results is None else results.get(place, self.report)

    def answer(self, place: Hashable, work: Callable[[], A]) -> A:
        """What `work` answers, kept for who asks again and shared with who asks the same meanwhile.
        Not where it may be cut by its time, nor where it is no answer but a plan."""
        if self.query.explain or self.scope.failed:
            return work()
        known = self.known(place)
        if known is not None:
            return cast(A, known)

        def kept() -> A:
            with self.reader.turn(self.ends_s):
                found = work()
            if self.reader.results is not None:
                self.reader.results.put(place, found)
            return found

        if self.query.timeout_s is not None:
            return kept()
        return cast(A, self.reader.flights.join(place, self.report, kept))

    def skipped(self) -> list[dict[str, str]]:
        """Every index and segment that could not be read, once."""
        return self.completeness().skipped_tasks

    def completeness(self) -> Completeness:
        """Of what was asked and read so far."""
        return self.scope.completeness(self.failed)


def _failure(failure: SegmentFailure) -> dict[str, str]:
    return {"segment": failure.key, "reason": failure.reason}


@contextmanager
def timed(report: Report, name: str) -> Iterator[None]:
    """Add what the block took to `report.ms[name]`."""
    started = time.perf_counter()
    try:
        yield
    finally:
        spent = (time.perf_counter() - started) * 1000
        report.ms[name] = report.ms.get(name, 0.0) + spent


def begin(
    reader: Reader,
    query: q.Query,
    cursor: Cursor | None = None,
    pin: Pin | None = None,
    *,
    points: bool = False,
) -> Search:
    """Check the patterns, open the scope, warn of keys that nothing has. `points`: the caller reads
    points; else a query for them is refused, though it may be about lines near some."""
    if query.kind != "line" and not points:
        raise BadQuery(
            "a search answers lines", hint="ask for points with `ranklog series`, client.series()"
        )
    ends_s = None if query.timeout_s is None else time.monotonic() + query.timeout_s
    check_patterns(query.expr, reader.regexes)
    report = Report()
    with reader.turn(ends_s), timed(report, "list"):
        if pin is None:
            points = points or joins_points(query.expr)
            scope = open_scope(reader, query, cursor, report, points=points)
        else:
            scope = open_pinned(reader, pin)
            fill_report(scope, report)
    if not scope.points:  # their names are no keys of lines
        warn_unknown_keys(query.expr, scope.indexes.values(), report)
    return Search(reader, query, scope, report, ends_s=ends_s, pinned=pin is not None)


def search(
    reader: Reader,
    query: q.Query,
    *,
    groups: bool = True,
    pin: Pin | None = None,
    keep: bool = False,
) -> Answer:
    """One page of lines. `groups`: a match shows the rest of its group. `pin`: as it was then;
    `keep`: pin it."""
    newest = query.order != "oldest"
    cursor = parse_cursor(query.cursor, query.expr, newest=newest) if query.cursor else None
    run = begin(reader, query, cursor, pin)
    note_copies(query.expr, run.scope.indexes.values(), run.report)
    if keep:
        pin = save_pin(reader, query, run.scope, run.completeness(), groups=groups)
    kind = ("lines", groups, None if pin is None else pin.id, lineage_place(run))
    place = place_of(query, run.scope, kind)
    return run.answer(place, lambda: _page(run, cursor, groups=groups, pin=pin))


def _page(run: Search, cursor: Cursor | None, *, groups: bool, pin: Pin | None) -> Answer:
    """The lines behind the cursor, with their neighbours."""
    query, newest = run.query, run.query.order != "oldest"
    pinned = None if pin is None else pin.to_json()
    expr = run.expr()
    # one more than the limit tells whether there is more
    limit = None if query.limit is None else query.limit + 1
    progress = cursor.progress if cursor else Progress()
    plan = run.plan(expr, Lines(limit=limit, newest=newest), progress.common)
    if progress.late or progress.done:
        plan.scans = progress.scans_left(plan.scans, run.scope.indexes, newest=newest)
    if query.explain:
        return Answer(
            report=run.report,
            explain=explained(query, plan),
            completeness=run.completeness(),
            pin=pinned,
        )
    lines, late = _first_lines(run, plan, limit, newest)
    with timed(run.report, "merge"):
        truncated = query.limit is not None and len(lines) > query.limit
        lines = lines[: query.limit]
        lines, following = _next_page(run, lines, late, progress, cut=truncated)
    shown = with_neighbours(run, lines, groups=groups, newest=query.order == "newest")
    shown = mark_superseded(run, shown)
    return Answer(shown, run.completeness(), run.report, following, truncated, pin=pinned)


def _first_lines(
    run: Search, plan: Plan, limit: int | None, newest: bool
) -> tuple[list[Line], list[SegmentScan]]:
    """The first lines that match, and what there was no time for: all of it where an inner query
    had too little, as then nobody knows what matches."""
    if run.late:
        run.failed += [{"segment": s.key, "reason": "not reached in time"} for s in plan.scans]
        return [], plan.scans
    merge = _scan_waves(run, plan, limit, newest)
    late = [scan for scan in plan.scans if scan.number in run.late]
    with timed(run.report, "merge"):
        return merge.lines(), late


def _next_page(
    run: Search, lines: list[Line], late: Sequence[SegmentScan], progress: Progress, *, cut: bool
) -> tuple[list[Line], str | None]:
    """The lines of this page, and the cursor of the next one where there is one."""
    newest = run.query.order != "oldest"
    names = {segment_name(run.scope.indexes[scan.number]): scan for scan in late}
    if is_too_many(progress, names):
        lines, cut = cut_safely(lines, late, newest=newest), True
        names = {name: scan for name, scan in names.items() if name in progress.late}
        if not lines:
            return [], _cursor(run, progress, newest)
    last = (lines[-1].ts_ns, lines[-1].stream_id, lines[-1].seq) if cut and lines else None
    if cut and last is None:
        return lines, None
    following = next_progress(progress, last, names, newest=newest)
    return lines, None if following is None else _cursor(run, following, newest)


def scan_lines(run: Search, expr: q.Expr, *, limit: int | None, newest: bool) -> LineMerge:
    """The first `limit` lines that match `expr` in order of time."""
    plan = run.plan(expr, Lines(limit=limit, newest=newest))
    return _scan_waves(run, plan, limit, newest)


def _scan_waves(run: Search, plan: Plan, limit: int | None, newest: bool) -> LineMerge:
    """Scan in waves; stop when no task left can hold one of the first `limit` lines."""
    merge = LineMerge(run.scope.indexes, limit=limit, newest=newest)
    left = {scan.number: scan for scan in plan.scans}
    order = newest if limit is not None else None
    for wave in run.outcomes(plan, order):
        with timed(run.report, "merge"):
            for task, outcome in wave:
                merge.add(outcome)
                for scan in task.segments:
                    left.pop(scan.number, None)
            full = merge.full_at()
        if full is not None and not any(_reaches(s, full, newest) for s in left.values()):
            break
    return merge


def _reaches(scan: SegmentScan, ts: int, newest: bool) -> bool:
    return scan.max_ts >= ts if newest else scan.min_ts <= ts


def _cursor(run: Search, progress: Progress, newest: bool) -> str:
    scope = run.scope
    launches = None
    if scope.launches is not None:
        launches = tuple((item.run, item.launch) for item in scope.launches)
    return Cursor(
        query=query_hash(run.query.expr),
        newest=newest,
        progress=progress,
        from_ns=scope.listing.from_ns,
        to_ns=scope.listing.to_ns,
        defaulted=scope.listing.defaulted,
        launches=launches,
    ).render()


def explained(query: q.Query, plan: Plan) -> dict[str, Any]:
    """The plan before anything is read. `reads`: what the scans read where no limit ends them early;
    `counted`: segments whose index has the answer."""
    late = sum(end - start for scan in plan.scans for start, end in scan.late)
    reads = {
        "segments": len(plan.scans),
        "bytes_max": late + sum(scan_bytes(scan) for scan in plan.scans),
        "counted": len(plan.counted),
    }
    return {"query": render_expr(query.expr), "reads": reads, "segments": plan.explained}
