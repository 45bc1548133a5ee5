"""Lines beside a match: the rest of its group, and its context in the same stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ranklog import limits
from ranklog.errors import BadInput
from ranklog.layout.index import SegmentIndex
from ranklog.merge.lines import LineMerge, order_lines
from ranklog.model import query as q
from ranklog.model.answer import Line
from ranklog.model.index import IndexHead
from ranklog.plan.build import Plan
from ranklog.plan.segments import Kept, plan_scan
from ranklog.plan.tables import tables_of
from ranklog.plan.tasks import Lines

if TYPE_CHECKING:
    from ranklog.client.search import Search

# stream_id -> (first seq, end seq, group or -1)
Wanted = dict[str, list[tuple[int, int, int]]]
_ANY_GROUP = -1


def with_neighbours(
    run: Search, lines: Sequence[Line], *, groups: bool, newest: bool
) -> list[Line]:
    """The lines in the answer's order, with what stands beside them (`match` False)."""
    wanted: Wanted = {}
    if groups:
        _want_groups(lines, wanted)
    if run.query.context:
        _want_context(lines, run.query.context, wanted)
    beside = fetch(run, wanted) if wanted else []
    return order_lines([*lines, *beside], newest=newest)


def _want_groups(lines: Sequence[Line], wanted: Wanted) -> None:
    """Up to GROUP_LINES_MAX lines from each group's first, and as many around a later match."""
    for line in lines:
        if line.group is None:
            continue
        spans = wanted.setdefault(line.stream_id, [])
        head = (line.group, line.group + limits.GROUP_LINES_MAX, line.group)
        if head not in spans:
            spans.append(head)
        if line.seq >= head[1]:
            half = limits.GROUP_LINES_MAX // 2
            spans.append((line.seq - half, line.seq + half, line.group))


def _want_context(lines: Sequence[Line], context: int, wanted: Wanted) -> None:
    if not 0 <= context <= limits.CONTEXT_LINES_MAX:
        raise BadInput(f"context of {context} lines", hint=f"0 to {limits.CONTEXT_LINES_MAX}")
    for line in lines:
        span = (max(0, line.seq - context), line.seq + context + 1, _ANY_GROUP)
        wanted.setdefault(line.stream_id, []).append(span)


def fetch(run: Search, wanted: Mapping[str, Sequence[tuple[int, int, int]]]) -> list[Line]:
    """The lines of these seq ranges, in the indexes that were loaded."""
    shape = Lines(limit=None)
    plan = Plan(q.Everything(), shape)
    for number, index in run.scope.indexes.items():
        spans = _spans(index, wanted)
        groups = _row_groups(index.head, spans)
        if not groups:
            continue
        kept = Kept(groups, skip=run.scope.skips.get(number, ()))
        scan = plan_scan(number, index, kept, q.Everything(), shape)
        plan.scans.append(replace(scan, wanted=tuple(spans)))
    merge = LineMerge(run.scope.indexes, limit=None, newest=False)
    for wave in run.outcomes(plan):
        for _, outcome in wave:
            merge.add(outcome)
    return merge.lines(match=False)


def _spans(
    index: SegmentIndex, wanted: Mapping[str, Sequence[tuple[int, int, int]]]
) -> list[tuple[int, int, int, int]]:
    """Wanted ranges of which the segment holds rows."""
    positions, spans = tables_of(index).positions, []
    for stream_id, ranges in wanted.items():
        position = positions.get(stream_id)
        if position is None:
            continue
        held = index.head.streams[position].ranges
        for first, end, group in ranges:
            if any(a < end and first < b for a, b in held):
                spans.append((position, first, end, group))
    return spans


def _row_groups(head: IndexHead, spans: Sequence[tuple[int, int, int, int]]) -> list[int]:
    """Row groups that may hold one of the ranges."""
    if head.segment is None:
        return []
    kept = []
    for i, group in enumerate(head.row_groups):
        seq = group.bounds.get("seq")
        low, high = (None, None) if seq is None else (seq.low, seq.high)
        for position, first, end, _ in spans:
            inside = (low is None or low < end) and (high is None or high >= first)
            if inside and (not group.streams or position in group.streams):
                kept.append(i)
                break
    return kept
