"""Counts: groups, buckets, the largest, and numbers of metadata, merged from indexes and scans.

Counts of groups are added up, so that the largest groups are the largest exactly; numbers are merged as
merge/numbers says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from ranklog import limits
from ranklog.client.answer import CountAnswer
from ranklog.client.lineage import lineage_place
from ranklog.client.reader import Reader
from ranklog.client.results import place_of
from ranklog.client.search import Search, begin, explained, timed
from ranklog.client.warn import note_copies
from ranklog.merge.groups import GroupMerge, GroupTotals, fill_buckets, sort_key
from ranklog.merge.numbers import Numbers
from ranklog.model import query as q
from ranklog.plan.build import Plan
from ranklog.plan.tasks import Groups

Totals: TypeAlias = "dict[tuple[Any, ...], GroupTotals]"


def count(reader: Reader, query: q.Query) -> CountAnswer:
    """Matching lines, by fields and buckets where the query names them."""
    run = begin(reader, query)
    note_copies(query.expr, run.scope.indexes.values(), run.report)
    place = place_of(query, run.scope, ("count", lineage_place(run)))
    return run.answer(place, lambda: count_in(run))


def count_in(run: Search) -> CountAnswer:
    """From the indexes where they say it, from scans where they do not."""
    query, expr = run.query, run.expr()
    merge = GroupMerge(
        run.scope.indexes, query.by, query.every_ns, query.every_iterations, stats=query.stats
    )
    scanned = query.every_iterations is not None or query.stats
    plan = run.plan(
        expr,
        merge.shape,
        count_by=None if scanned else query.by,
        count_every_ns=query.every_ns,
    )
    _count_from_indexes(run, plan, merge)
    if query.explain:
        return CountAnswer((), [], run.completeness(), run.report, explained(query, plan))
    for wave in run.outcomes(plan):
        with timed(run.report, "merge"):
            for _, outcome in wave:
                merge.add(outcome)
    with timed(run.report, "merge"):
        return _answer(run, merge, query)


def _answer(run: Search, merge: GroupMerge, query: q.Query) -> CountAnswer:
    """Groups in order; one total without fields; empty buckets where there is nothing else."""
    groups = merge.groups if merge.fields else {(): merge.groups.get((), GroupTotals())}
    total, width = merge.total(), query.every_ns or query.every_iterations
    by = len(query.by)
    if query.top is not None:
        groups = _largest(groups, query.top, by, run)
    if width is not None:
        groups = groups | _empty_buckets(groups, width)
    if query.top is not None and width is None:
        order = sorted(groups, key=lambda key: (-groups[key].count, _order(key, by)))
    else:
        order = sorted(groups, key=lambda key: _order(key, by))
    return CountAnswer(
        merge.fields,
        [(key, groups[key].count) for key in order],
        run.completeness(),
        run.report,
        total=total,
        stats=[_numbers(groups[key], query.stats) for key in order] if query.stats else None,
    )


def _largest(groups: Totals, top: int, by: int, run: Search) -> Totals:
    """The groups with the most lines, buckets together; of equal ones the first in order."""
    lines: dict[tuple[Any, ...], int] = {}
    for key, total in groups.items():
        lines[key[:by]] = lines.get(key[:by], 0) + total.count
    if len(lines) > top:
        run.report.notes.append(f"the {top} largest of {len(lines)} groups")
    ranked = sorted(lines, key=lambda key: (-lines[key], _order(key, by)))
    kept = set(ranked[:top])
    return {key: total for key, total in groups.items() if key[:by] in kept}


def _order(key: Sequence[Any], by: int) -> tuple[Any, ...]:
    """Buckets first, then fields."""
    keys = [sort_key(value) for value in key]
    return (*keys[by:], *keys[:by])


def _empty_buckets(groups: Totals, width: int) -> Totals:
    buckets = fill_buckets([key[-1] for key in groups if key[-1] is not None], width)
    fields = {key[:-1] for key in groups}
    if len(buckets) * len(fields) > limits.BUCKETS_MAX:
        return {}  # too many to print empty ones: those with lines stand alone
    wanted = ((*group, bucket) for group in fields for bucket in buckets)
    return {key: GroupTotals() for key in wanted if key not in groups}


def _numbers(total: GroupTotals, keys: Sequence[str]) -> dict[str, Any]:
    return {key: total.numbers.get(key, Numbers()).to_json() for key in keys}


def _count_from_indexes(run: Search, plan: Plan, merge: GroupMerge) -> None:
    """What the site tables decide, and where pruning says that every row left matches."""
    for number, lines in plan.counted.items():
        merge.add_sites(number, lines)
    if plan.shape != Groups(()):
        return
    certain = [scan for scan in plan.scans if scan.certain and not scan.skip]
    plan.scans = [scan for scan in plan.scans if not scan.certain or scan.skip]
    for scan in certain:
        rows = run.scope.indexes[scan.number].head.rows
        merge.add_total(rows if scan.rows is None else sum(b - a for a, b in scan.rows))
