"""From loaded indexes to scans: prune, fill the sets, leave duplicates out. Pure.

A segment is left out when its sets or the pruner say that no row can match; doubt keeps it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from ranklog.errors import Corrupt
from ranklog.layout.index import SegmentIndex
from ranklog.model import query as q
from ranklog.model.index import StreamEntry
from ranklog.plan.near import NearKeys
from ranklog.plan.overlap import is_covered
from ranklog.plan.prune import Pruner
from ranklog.plan.prune_sites import COUNTED_FIELDS, Counted, in_buckets
from ranklog.plan.scope import Resolver, StreamTerms, can_match, prepare
from ranklog.plan.segments import Kept, plan_scan
from ranklog.plan.tables import tables_of
from ranklog.plan.tasks import Groups, LeafExpr, Lines, NearRows, SegmentScan
from ranklog.plan.values import Regexes

Skips: TypeAlias = Mapping[int, Sequence[tuple[int, int, int]]]


@dataclass(slots=True)
class Plan:
    """What to scan, and what was left out. `explained`: one object per segment, where asked for.
    `counted`: segments whose lines the index has counted, by call site. `failed`: indexes that
    contradict themselves, with the reason; their bytes are those that were written.
    """

    expr: LeafExpr
    shape: Lines | Groups
    scans: list[SegmentScan] = field(default_factory=list)
    near: tuple[NearRows, ...] = ()
    segments_listed: int = 0
    segments_pruned: int = 0
    row_groups_total: int = 0
    row_groups_pruned: int = 0
    explained: list[dict[str, Any]] = field(default_factory=list)
    counted: dict[int, Counted] = field(default_factory=dict)
    failed: list[dict[str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """`full_scan`: every row of every segment is looked at. `after`: (ts, stream_id, seq).
    `count_by`: fields of a count, which an index may answer; None: lines or more are wanted.
    `count_every_ns`: its buckets of time.
    """

    full_scan: bool = False
    explain: bool = False
    after: tuple[int, str, int] | None = None
    count_by: tuple[str, ...] | None = None
    count_every_ns: int | None = None


def build_plan(
    expr: q.Expr,
    shape: Lines | Groups,
    indexes: Mapping[int, SegmentIndex],
    skips: Skips,
    regexes: Regexes,
    options: PlanOptions = PlanOptions(),
) -> Plan:
    """Scans of every segment that might hold a match. Raises BadQuery for what can't be asked."""
    prepared = prepare(expr)
    streams = StreamTerms(regexes)
    planner = _Planner(
        Plan(prepared.expr, shape),
        options,
        prepared.near,
        NearKeys(prepared.near, _entries(indexes.values())),
        Resolver(prepared, regexes, streams),
        Pruner(expr, regexes, streams),
    )
    plan = planner.plan
    for number, index in indexes.items():
        if index.head.segment is None:
            continue
        try:
            planner.add(number, index, skips.get(number, ()))
        except Corrupt as error:
            plan.failed.append({"segment": index.key, "reason": error.message})
    plan.near = planner.keys.rows()
    return plan


@dataclass(frozen=True, slots=True)
class _Planner:
    """Adds segments to a plan, one by one."""

    plan: Plan
    options: PlanOptions
    near: Sequence[q.NearSet]
    keys: NearKeys
    resolver: Resolver
    pruner: Pruner

    def add(self, number: int, index: SegmentIndex, skip: Sequence[tuple[int, int, int]]) -> None:
        """Raises Corrupt where sections of the index contradict each other."""
        plan, options, groups = self.plan, self.options, len(index.head.row_groups)
        plan.segments_listed += 1
        plan.row_groups_total += groups
        if skip and is_covered(index.head.streams, skip):
            why = "others answer for every row, or it was deleted"
            _explain(plan, options, index, 0, _whole(index, "rows", why))
            kept = None
        else:
            kept = _keep(index, plan, self.resolver, self.pruner, options)
        if kept is None:
            plan.segments_pruned += 1
            plan.row_groups_pruned += groups
            return
        plan.row_groups_pruned += groups - len(kept.row_groups)
        kept.skip = skip
        counted = None if skip else _counted(index, self.pruner, options)
        if counted is not None:
            plan.counted[number] = counted
            return
        scan = plan_scan(number, index, kept, plan.expr, plan.shape)
        plan.scans.append(_with_near(scan, index, self.keys, self.near, options))


def _counted(index: SegmentIndex, pruner: Pruner, options: PlanOptions) -> Counted | None:
    """Matching lines by call site from the index alone; None: they must be scanned."""
    by = options.count_by
    if options.full_scan or by is None or not COUNTED_FIELDS.issuperset(by):
        return None
    found, every_ns = pruner.counts(index, by_rank="rank" in by), options.count_every_ns
    if found is None:
        return None
    return Counted(found) if every_ns is None else in_buckets(index, found, every_ns)


def _entries(indexes: Iterable[SegmentIndex]) -> Iterable[StreamEntry]:
    return (entry for index in indexes for entry in index.head.streams)


def _keep(
    index: SegmentIndex,
    plan: Plan,
    resolver: Resolver,
    pruner: Pruner,
    options: PlanOptions,
) -> Kept | None:
    """What is left of a segment, None where no row can match."""
    head = index.head
    everything = range(len(head.row_groups))
    kept = Kept(everything, slots=resolver.fill(index))
    if options.full_scan:
        return kept
    newest = isinstance(plan.shape, Lines) and plan.shape.newest
    if options.after and is_beyond(options.after, head.min_ts, head.max_ts, newest=newest):
        _explain(plan, options, index, 0, _whole(index, "cursor", "every line comes before it"))
        return None
    sizes = (len(head.streams), len(index.templates))
    if can_match(plan.expr, kept.slots, *sizes, tables_of(index).ranked) is False:
        why = "no stream or template of the segment fits"
        _explain(plan, options, index, 0, _whole(index, "terms", why))
        return None
    pruned = pruner.prune(index, explain=options.explain)
    kept.row_groups, kept.tids = pruned.row_groups, pruned.tids
    kept.rows = None if pruned.tids is None else pruned.rows
    kept.certain = pruned.certain
    _explain(plan, options, index, len(kept.row_groups), pruned.witnesses())
    return kept if len(kept.row_groups) and kept.tids != () else None


def is_beyond(after: tuple[int, str, int], min_ts: int, max_ts: int, *, newest: bool) -> bool:
    """Whether all lines of a segment were on earlier pages."""
    return min_ts > after[0] if newest else max_ts < after[0]


def _whole(index: SegmentIndex, by: str, what: str) -> list[dict[str, Any]]:
    """One reason for all row groups."""
    return [{"by": by, "what": what, "row_groups": list(range(len(index.head.row_groups)))}]


def _explain(
    plan: Plan, options: PlanOptions, index: SegmentIndex, kept: int, why: Sequence[Any]
) -> None:
    if not options.explain:
        return
    segment = index.head.segment
    plan.explained.append(
        {
            "segment": segment.key if segment is not None else None,
            "index": index.key,
            "rows": index.head.rows,
            "row_groups": {"total": len(index.head.row_groups), "kept": kept},
            "excluded_by": list(why),
        }
    )


def _with_near(
    scan: SegmentScan,
    index: SegmentIndex,
    keys: NearKeys,
    near: Sequence[q.NearSet],
    options: PlanOptions,
) -> SegmentScan:
    entries = index.head.streams
    if near:
        by_rank = any(item.scope == "rank" for item in near)
        scan = replace(
            scan,
            keys=keys.of_streams(entries),
            ranks=tuple(entry.stream.rank for entry in entries) if by_rank else (),
            hosts=keys.hosts(entries) if by_rank else (),
        )
    if options.after is not None:
        scan = replace(scan, after=behind(options.after, entries))
    return scan


def behind(
    after: tuple[int, str, int], entries: Sequence[StreamEntry]
) -> tuple[int, int, bool, int]:
    """The cursor in the segment's terms: how many streams come before its stream by id."""
    ts, stream_id, seq = after
    place = sum(entry.stream_id < stream_id for entry in entries)
    present = any(entry.stream_id == stream_id for entry in entries)
    return ts, place, present, seq
