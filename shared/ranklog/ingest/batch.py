"""The write path, top to bottom: records to committed segments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ranklog.ingest.apart import ingest_apart
from ranklog.ingest.commit import Place, put_manifests
from ranklog.ingest.floors import Policies
from ranklog.ingest.gather import fill_iteration, gather, merge_values
from ranklog.ingest.hours import Part, distinct_rows, split_hours
from ranklog.ingest.markers import Markers
from ranklog.ingest.parts import Batch, IngestReport, frames_beside
from ranklog.ingest.points import ingest_points
from ranklog.ingest.quarantine import FAILED, BadFrame, keep
from ranklog.ingest.records import Received, read_records
from ranklog.ingest.shares import sharing
from ranklog.ingest.told import ByKind, by_kind
from ranklog.layout import keys
from ranklog.layout.build import (
    KIND_LINE,
    Beside,
    BuiltSegment,
    RowFacts,
    build_notes,
    build_segment,
    find_facts,
)
from ranklog.layout.rows import MetadataValues, Rows
from ranklog.model.record import Record
from ranklog.store.protocol import Store

if TYPE_CHECKING:
    from ranklog.access.seals import Seals
    from ranklog.delete.retention import Policy
    from ranklog.ingest.allowance import Allowance
    from ranklog.rules.ruleset import RuleSet

    # One set for all, or a tenant's own.
    Rules = RuleSet | Callable[[str], RuleSet] | None

__all__ = ["IngestReport", "Record", "ingest_batch", "ingest_frames"]


def ingest_batch(
    records: Sequence[Record],
    *,
    store: Store,
    rules: Rules = None,
    seals: Seals | None = None,
    policies: Policies | None = None,
    allowance: Allowance | None = None,
    markers: Markers | None = None,
    source: str,
    first: str,
    last: str,
) -> IngestReport:
    """Store what the records hold: a pure function of their bytes and arrival times.

    `source`, `first`, `last` name where the records come from; the same names and records again
    commit nothing twice. When this returns, every good line is committed and every bad frame is in
    quarantine; with `seals`, only a frame whose MAC proves its tenant, or whose tenant requires none, is
    good. With an `allowance`, what is over a tenant's quota waits in the store (`ingest.waiting`). With
    `markers` that are kept from batch to batch, an hour marker is put once and not with each. Raises
    what the store raises (StoreFull, Unavailable): then call it again.
    """
    if allowance is not None:
        allowance.begin()
    read = read_records(records, store, source, seals, allowance)
    by_sequence = {record.sequence: record for record in records}

    def ingest(frames: Sequence[Received], first: str, last: str) -> IngestReport:
        return ingest_frames(
            frames,
            store=store,
            rules=rules,
            policies=policies,
            markers=markers,
            source=source,
            first=first,
            last=last,
        )

    def keep_failed(item: Received, why: str) -> BadFrame:
        return keep(store, by_sequence[item.sequence], FAILED, why, source)

    report = ingest_apart(read.received, first, last, ingest, keep_failed)
    report.bad = [*read.bad, *report.bad]
    report.parked = read.parked
    if allowance is not None:
        allowance.settle(read.parked)
    return report


def ingest_frames(
    received: Sequence[Received],
    *,
    store: Store,
    rules: Rules,
    policies: Policies | None = None,
    markers: Markers | None = None,
    source: str,
    first: str,
    last: str,
) -> IngestReport:
    """`ingest_batch` from frames that were read already."""
    report = IngestReport()
    policies, markers = policies or Policies(store), markers or Markers(store)
    for tenant, frames in _by_tenant(received):
        put_manifests(store, [item.frame for item in frames])
        lines, points = by_kind(frames)
        arrival_ns = min(item.arrival_ns for item in frames)
        day, hour = keys.day_text(arrival_ns), keys.hour_of(arrival_ns)
        batch = Batch(
            store, Place(tenant, None, day, source, first, last, hour), arrival_ns, report, markers
        )
        policy = policies(tenant)
        with sharing(report, tenant, frames):
            if lines.frames or lines.told:
                own = rules(tenant) if callable(rules) else rules
                _ingest_lines(batch, lines, own, policy)
            if points.frames or points.told:
                ingest_points(batch, points, policy)
    return report


def _ingest_lines(batch: Batch, lines: ByKind, rules: RuleSet | None, policy: Policy) -> None:
    frames = lines.frames
    gathered = gather([*frames, *lines.told])
    order = distinct_rows(gathered.rows, frames)
    facts = find_facts(gathered.rows)
    rows = fill_iteration(_apply_rules(gathered.rows, facts, rules, batch.report))
    batch.report.repeated += len(rows) - len(order)
    order = batch.kept(rows, order, gathered.notes, policy, frames)

    def build(part: Part, beside: Beside) -> BuiltSegment:
        return build_segment(rows, facts, part.chosen, rows.metadata, beside)

    parts = split_hours(rows, order, gathered.notes)
    for part, beside in zip(parts, frames_beside(rows, parts, frames), strict=True):
        is_new = batch.commit(KIND_LINE, rows, part, beside, build, build_notes)
        batch.report.lines += len(part.chosen)
        batch.report.known += 0 if is_new else len(part.chosen)
        text_bytes = rows.offsets[part.chosen + 1] - rows.offsets[part.chosen]
        batch.report.text_bytes += int(text_bytes.sum())


def _by_tenant(received: Sequence[Received]) -> Iterable[tuple[str, list[Received]]]:
    """Frames by tenant, sorted; a frame that came twice counts once."""
    tenants: dict[str, dict[str, Received]] = {}
    for item in received:
        tenants.setdefault(item.frame.tenant, {}).setdefault(item.header_hash, item)
    return ((tenant, list(frames.values())) for tenant, frames in sorted(tenants.items()))


def _apply_rules(rows: Rows, facts: RowFacts, rules: RuleSet | None, report: IngestReport) -> Rows:
    """Rows with the metadata that rules find; what the producer said stays."""
    if rules is None or not len(rows):
        return rows
    numbered = facts.numbered
    found = rules.evaluate(
        rows.bodies(), numbered.ids, numbered.templates, rows.stream, rows.streams
    )
    report.rules_failed |= found.failed
    metadata = rows.metadata
    for column in found.columns:
        values = MetadataValues(column.key, column.type, column.rows.astype("int64"), column.values)
        metadata = merge_values(values, metadata)
    return replace(rows, metadata=metadata)
