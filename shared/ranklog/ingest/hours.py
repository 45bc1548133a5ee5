"""Which rows go where: one part per event hour that is worth a segment, the rest in a late part.

Shapes: `chosen` I64[m] are indices into the batch's rows, in (stream, seq) order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ranklog.ingest.records import Received
from ranklog.layout.build import StreamNotes
from ranklog.layout.rows import I64, StreamRows
from ranklog.limits import HOUR_NS, HOUR_ROWS_MIN, HOURS_PER_BATCH_MAX


@dataclass(slots=True)
class Part:
    """Rows of one segment, and what its index says of streams. `hour` None: the late part."""

    hour: int | None
    chosen: I64
    notes: dict[int, StreamNotes] = field(default_factory=dict)
    open_hours: set[int] = field(default_factory=set)  # of streams that are named for them

    def add(self, place: int, **notes: object) -> None:
        self.notes[place] = replace(self.notes.get(place, StreamNotes()), **notes)  # type: ignore[arg-type]

    def bounds(self, rows: StreamRows, arrival_ns: int) -> tuple[int, int]:
        """Times that the index's name must cover; the arrival where it says nothing of any time."""
        low, high = [], []
        if len(self.chosen):
            ts = rows.ts[self.chosen]
            low, high = [int(ts.min())], [int(ts.max())]
        if self.hour is None:
            hours = [fence.hour for note in self.notes.values() for fence in note.fences]
            hours += self.open_hours
            low += [hour * HOUR_NS for hour in hours]
            high += [hour * HOUR_NS + HOUR_NS - 1 for hour in hours]
        return min(low, default=arrival_ns), max(high, default=arrival_ns)


def distinct_rows(rows: StreamRows, frames: Sequence[Received]) -> I64:
    """Rows in (stream, seq) order, of equal ones that of the frame with the smaller hash; linear where
    each stream's seq ascends. The rows are those of the frames, one frame after the other."""
    small = rows.stream.astype(np.uint16) if len(rows.streams) <= 2**16 else rows.stream
    order = np.argsort(small, kind="stable")
    stream, seq = rows.stream[order], rows.seq[order]
    if ((stream[1:] != stream[:-1]) | (seq[1:] > seq[:-1])).all():
        return order
    hashes = np.array([item.header_hash for item in frames])
    place = np.argsort(np.argsort(hashes, kind="stable"))
    counts = [item.frame.rows for item in frames]
    order = np.lexsort((np.repeat(place, counts), rows.seq, rows.stream))
    stream, seq = rows.stream[order], rows.seq[order]
    keep = np.ones(len(order), np.bool_)
    keep[1:] = (stream[1:] != stream[:-1]) | (seq[1:] != seq[:-1])
    return order[keep]


def split_hours(rows: StreamRows, order: I64, notes: Mapping[int, StreamNotes]) -> list[Part]:
    """Parts by hour, ascending, the late one last; every row and every note is in exactly one."""
    hours = rows.ts[order] // HOUR_NS
    distinct, counts = np.unique(hours, return_counts=True)
    by_size = np.lexsort((distinct, -counts))[:HOURS_PER_BATCH_MAX]
    own = sorted(
        int(distinct[i]) for at, i in enumerate(by_size) if at == 0 or counts[i] >= HOUR_ROWS_MIN
    )
    if len(own) == len(distinct) == 1:
        parts = [Part(own[0], order)]
    else:
        parts = [Part(hour, order[hours == hour]) for hour in own]
    late = Part(None, order[~np.isin(hours, own)])
    _spread_notes(rows, notes, parts, late)
    return parts + ([late] if len(late.chosen) or late.notes else [])


def _spread_notes(
    rows: StreamRows, notes: Mapping[int, StreamNotes], parts: list[Part], late: Part
) -> None:
    """Fences to their hour's part; drops and the end to the stream's last row's; else to the late."""
    by_hour = {part.hour: part for part in parts}
    last_part = _part_of_last_row(rows, [*parts, late])
    for place, note in notes.items():
        fences = defaultdict(list)
        for fence in note.fences:
            fences[fence.hour if fence.hour in by_hour else None].append(fence)
        for hour, of_hour in fences.items():
            by_hour.get(hour, late).add(place, fences=tuple(of_hour))
        for (
            hour
        ) in note.open_hours:  # an entry that says nothing keeps an answer from being complete
            part = by_hour.get(hour, late)
            part.add(place)
            part.open_hours.add(hour)
        if (
            note.alive_ns is not None
        ):  # a heartbeat is no object of its own where others said something
            where = last_part.get(place) or by_hour.get(note.alive_ns // HOUR_NS, late)
            where.add(place, alive_ns=note.alive_ns)
        elif place not in last_part and note == StreamNotes():
            late.add(place)
        if note.drops or note.end:
            last_part.get(place, late).add(place, drops=note.drops, end=note.end)


def _part_of_last_row(rows: StreamRows, parts: list[Part]) -> dict[int, Part]:
    """By stream the part that holds its row of the highest seq."""
    found: dict[int, tuple[int, Part]] = {}
    for part in parts:
        stream = rows.stream[part.chosen]
        lasts = np.flatnonzero(np.diff(stream, append=-1))
        seqs = rows.seq[part.chosen[lasts]]
        for place, seq in zip(stream[lasts].tolist(), seqs.tolist(), strict=True):
            if place not in found or seq > found[place][0]:
                found[place] = (seq, part)
    return {place: part for place, (_, part) in found.items()}
