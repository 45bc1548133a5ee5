"""A tenant's share of a batch on its way into the store: one segment and one index per part."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from ranklog.delete.retention import Policy
from ranklog.ingest.commit import (
    Place,
    is_stale,
    put_index,
    put_pointer,
    put_segment,
)
from ranklog.ingest.floors import above_floor
from ranklog.ingest.hours import Part
from ranklog.ingest.markers import Markers
from ranklog.ingest.quarantine import BadFrame
from ranklog.ingest.records import Received
from ranklog.ingest.shares import Share
from ranklog.layout.build import Beside, BuiltSegment, StreamNotes
from ranklog.layout.claims import contested_in
from ranklog.layout.rows import I64, StreamRows
from ranklog.model.index import Contested, FrameRef
from ranklog.store.protocol import Store

R = TypeVar("R", bound=StreamRows)


@dataclass(slots=True)
class IngestReport:
    """What a batch became. `known`: of the lines, those in parts that an earlier attempt at the same
    records committed; what other records stored of them is not known here. `repeated`: rows dropped as
    duplicates within the batch; `refused`: rows older than the tenant keeps, by stream in `refused_of`;
    `parked`: the tenant of each frame that waits for room.

    `committed` and `already` are keys of indexes; `rules_failed`: rule -> reason; `shares`: tenant -> what
    of this is its own.
    """

    lines: int = 0
    points: int = 0
    text_bytes: int = 0
    known: int = 0
    refused: int = 0
    repeated: int = 0
    segment_bytes: int = 0
    index_bytes: int = 0
    committed: list[str] = field(default_factory=list)
    already: list[str] = field(default_factory=list)
    bad: list[BadFrame] = field(default_factory=list)
    parked: list[str] = field(default_factory=list)
    refused_of: Counter[str] = field(default_factory=Counter)
    rules_failed: dict[str, str] = field(default_factory=dict)
    shares: dict[str, Share] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Batch:
    """Where parts go, and what became of them. `place` is of the late part."""

    store: Store
    place: Place
    arrival_ns: int
    report: IngestReport
    markers: Markers

    def kept(
        self,
        rows: StreamRows,
        order: I64,
        notes: dict[int, StreamNotes],
        policy: Policy,
        frames: Sequence[Received],
    ) -> I64:
        """The rows that are not older than the tenant keeps; the others are counted."""
        kept = above_floor(rows, order, notes, policy, self.arrival_ns, frames)
        if len(kept) < len(order):
            self.report.refused += len(order) - len(kept)
            lost = rows.stream[np.setdiff1d(order, kept)]
            for place, count in zip(*np.unique(lost, return_counts=True), strict=True):
                self.report.refused_of[rows.streams[place].stream_id] += int(count)
        return kept

    def commit(
        self,
        kind: str,
        rows: R,
        part: Part,
        beside: Beside,
        build: Callable[[Part, Beside], BuiltSegment],
        build_notes: Callable[[R, Beside, tuple[int, int]], bytes],
    ) -> bool:
        """Segment, hour markers, pointer, index: in this order. Whether an earlier attempt had not."""
        store, report = self.store, self.report
        place = replace(self.place, hour=part.hour)
        bounds = part.bounds(rows, self.arrival_ns)
        key = place.index_key(kind, bounds)
        beside = replace(beside, notes=part.notes)
        streams = {rows.streams[at] for at in {*rows.stream[part.chosen].tolist(), *part.notes}}
        launches = {(stream.run, stream.launch) for stream in streams}
        if len(part.chosen):
            built = build(part, beside)
            started_s = time.monotonic()
            ref = put_segment(store, place, built.segment)
            self.markers.put(place, launches)
            index = built.index(ref)
            if is_stale(started_s):
                index = built.index(put_segment(store, place, built.segment, again=True))
            put_pointer(store, place, key)
            report.segment_bytes += ref.length
        else:
            self.markers.put(place, launches)
            index = build_notes(rows, beside, bounds)
        is_new = put_index(store, key, index)
        (report.committed if is_new else report.already).append(key)
        report.index_bytes += len(index)
        return is_new


def frames_beside(
    rows: StreamRows, parts: Sequence[Part], frames: Sequence[Received]
) -> list[Beside]:
    """What the index of each part says of the batch's frames: of those with rows in it, so that it tells
    whose its rows are, and in the first of those without any."""
    refs = [frame_ref(item) for item in frames]
    contested = contested_in(refs)
    if len(parts) == 1:
        return [Beside(frames=tuple(refs), contested=contested)]
    ends = np.cumsum([item.frame.rows for item in frames])
    found = []
    told: set[int] = set()
    for part in parts:
        # an index of a row -> the first frame that ends behind it
        places = np.unique(np.searchsorted(ends, part.chosen, "right")).tolist()
        found.append([refs[place] for place in places])
        told.update(places)
    rest = [ref for place, ref in enumerate(refs) if place not in told]
    found[:1] = [[*rest, *found[0]]] if found else []
    return [
        Beside(frames=tuple(of_part), contested=_of_part(rows, part, contested))
        for part, of_part in zip(parts, found, strict=True)
    ]


def _of_part(rows: StreamRows, part: Part, contested: Sequence[Contested]) -> tuple[Contested, ...]:
    """Those of which a line is in the part."""
    found = []
    for one in contested:
        seq = rows.seq[part.chosen]
        own = rows.stream[part.chosen] == rows.stream_ids.index(one.stream_id)
        if (own & (one.first <= seq) & (seq < one.end)).any():
            found.append(one)
    return tuple(found)


def frame_ref(item: Received) -> FrameRef:
    """The frame, for who audits."""
    frame = item.frame
    return FrameRef(
        frame.agent,
        frame.number,
        item.header_hash,
        frame.previous,
        item.payload_hash,
        tuple(
            (entry.stream.stream_id, entry.first_seq, entry.first_seq + entry.rows)
            for entry in frame.streams
            if entry.rows
        ),
        sum(drop.lines for entry in frame.streams for drop in entry.drops),
    )
