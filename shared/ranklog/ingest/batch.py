"""The write path, top to bottom: records to committed segments."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ranklog.ingest.commit import (
    Place,
    is_stale,
    put_index,
    put_manifests,
    put_markers,
    put_pointer,
    put_segment,
)
from ranklog.ingest.gather import fill_iteration, gather, merge_values
from ranklog.ingest.hours import Part, distinct_rows, split_hours
from ranklog.ingest.records import BadFrame, Received, read_records
from ranklog.layout import keys
from ranklog.layout.build import KIND_LINE, Beside, RowFacts, build_notes, build_segment, find_facts
from ranklog.layout.rows import MetadataValues, Rows
from ranklog.model.index import FrameRef
from ranklog.model.record import Record
from ranklog.store.protocol import Store

if TYPE_CHECKING:
    from ranklog.rules.ruleset import RuleSet

    # One set for all, or a tenant's own.
    Rules = RuleSet | Callable[[str], RuleSet] | None

__all__ = ["IngestReport", "Record", "ingest_batch", "ingest_frames"]


@dataclass(slots=True)
class IngestReport:
    """What a batch became. `repeated`: rows dropped as duplicates within the batch.

    `committed` and `already` are keys of indexes; `rules_failed`: rule -> reason.
    """

    lines: int = 0
    text_bytes: int = 0
    repeated: int = 0
    segment_bytes: int = 0
    index_bytes: int = 0
    committed: list[str] = field(default_factory=list)
    already: list[str] = field(default_factory=list)
    bad: list[BadFrame] = field(default_factory=list)
    rules_failed: dict[str, str] = field(default_factory=dict)


def ingest_batch(
    records: Sequence[Record],
    *,
    store: Store,
    rules: Rules = None,
    source: str,
    first: str,
    last: str,
) -> IngestReport:
    """Store what the records hold: a pure function of their bytes and arrival times.

    `source`, `first`, `last` name where the records come from; the same names and records again
    commit nothing twice. When this returns, every good line is committed and every bad frame is in
    quarantine. Raises what the store raises (StoreFull, Unavailable): then call it again.
    """
    received, bad = read_records(records, store, source)
    report = ingest_frames(
        received, store=store, rules=rules, source=source, first=first, last=last
    )
    report.bad = bad
    return report


def ingest_frames(
    received: Sequence[Received],
    *,
    store: Store,
    rules: Rules,
    source: str,
    first: str,
    last: str,
) -> IngestReport:
    """`ingest_batch` from frames that were read already."""
    report = IngestReport()
    for tenant, frames in _by_tenant(received):
        gathered = gather(frames)
        order = distinct_rows(gathered.rows)
        facts = find_facts(gathered.rows)
        own = rules(tenant) if callable(rules) else rules
        rows = fill_iteration(_apply_rules(gathered.rows, facts, own, report))
        beside = Beside(frames=tuple(_frame_ref(item) for item in frames))  # in one of its indexes
        arrival_ns = min(item.arrival_ns for item in frames)
        put_manifests(store, [item.frame for item in frames])
        report.repeated += len(rows) - len(order)
        for part in split_hours(rows, order, gathered.notes):
            where = (source, first, last, keys.hour_of(arrival_ns))
            place = Place(tenant, part.hour, keys.day_text(arrival_ns), *where)
            _commit(store, place, rows, facts, part, beside, arrival_ns, report)
            beside = Beside()
    return report


def _by_tenant(received: Sequence[Received]) -> Iterable[tuple[str, list[Received]]]:
    """Frames by tenant, sorted; a frame that came twice counts once."""
    tenants: dict[str, dict[str, Received]] = {}
    for item in received:
        tenants.setdefault(item.frame.tenant, {}).setdefault(item.header_hash, item)
    return ((tenant, list(frames.values())) for tenant, frames in sorted(tenants.items()))


def _frame_ref(item: Received) -> FrameRef:
    return FrameRef(item.frame.agent, item.frame.number, item.header_hash)


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


def _commit(
    store: Store,
    place: Place,
    rows: Rows,
    facts: RowFacts,
    part: Part,
    beside: Beside,
    arrival_ns: int,
    report: IngestReport,
) -> None:
    """Segment, hour markers, pointer, index: in this order."""
    bounds = part.bounds(rows, arrival_ns)
    key = place.index_key(KIND_LINE, bounds)
    beside = replace(beside, notes=part.notes)
    streams = {rows.streams[at] for at in {*rows.stream[part.chosen].tolist(), *part.notes}}
    launches = {(stream.run, stream.launch) for stream in streams}
    if len(part.chosen):
        built = build_segment(rows, facts, part.chosen, rows.metadata, beside)
        started_s = time.monotonic()
        ref = put_segment(store, place, built.segment)
        put_markers(store, place, launches)
        index = built.index(ref)
        if is_stale(started_s):
            index = built.index(put_segment(store, place, built.segment, again=True))
        put_pointer(store, place, key)
        report.segment_bytes += ref.length
    else:
        put_markers(store, place, launches)
        index = build_notes(rows, beside, bounds)
    (report.committed if put_index(store, key, index) else report.already).append(key)
    report.index_bytes += len(index)
    report.lines += len(part.chosen)
    report.text_bytes += int((rows.offsets[part.chosen + 1] - rows.offsets[part.chosen]).sum())
