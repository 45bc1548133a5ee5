"""Frames of one tenant to rows: columns end to end, streams and call sites in one table each.

Shapes: n rows over all frames, in the order of the frames; `frame_rows` rows of each frame.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ranklog.ingest.records import Received
from ranklog.layout import schema
from ranklog.layout.build import StreamNotes
from ranklog.layout.drops import Drops
from ranklog.layout.rows import I32, I64, NO_HEAD, MetadataValues, Rows
from ranklog.limits import TIME_FUTURE_NS_MAX, TIME_PAST_NS_MAX
from ranklog.model.frame import (
    NO_GROUP,
    NO_ITERATION,
    TS_CLAIMED,
    CallSite,
    Drop,
    Fence,
    Frame,
    FrameStream,
)
from ranklog.model.stream import Stream


@dataclass(frozen=True, slots=True)
class Gathered:
    """Rows of a tenant, and what its frames say of streams, by place in `rows.streams`."""

    rows: Rows
    notes: dict[int, StreamNotes]


class StreamTable:
    """Streams of a batch by id; the last description of a stream wins, as it knows the most."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._seen: dict[Stream, int] = {}
        self.streams: list[Stream] = []

    def place(self, stream: Stream) -> int:
        found = self._seen.get(stream)
        if found is None:
            found = self._places.setdefault(stream.stream_id, len(self.streams))
            self._seen[stream] = found
            if found == len(self.streams):
                self.streams.append(stream)
            self.streams[found] = stream
        return found

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(self._places)


def gather(received: Sequence[Received]) -> Gathered:
    """Rows of the frames of one tenant."""
    frames = [item.frame for item in received]
    table = StreamTable()
    named = [(table.place(entry.stream), entry) for frame in frames for entry in frame.streams]
    stream, seq = streams_of(frames, named)
    sites, site = _sites(frames)
    counts = np.array([frame.rows for frame in frames], np.int64)
    first_rows = np.cumsum(counts) - counts
    group = column(frames, "group", "<u4").astype(np.int64)
    lengths = column(frames, "text_length", "<u4")
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    raw_rows, raw = _raw(frames, first_rows)
    rows = Rows(
        streams=tuple(table.streams),
        stream_ids=table.ids,
        sites=sites,
        stream=stream,
        seq=seq,
        ts=column(frames, "ts", "<i8"),
        level=column(frames, "level", "<i2"),
        iteration=column(frames, "iteration", "<i8"),
        rank=column(frames, "rank", "<i4"),
        group=np.where(group == NO_GROUP, NO_HEAD, np.maximum(seq - group, 0)),
        flags=column(frames, "flags", "<u2").view(np.int16),
        body_at=column(frames, "body_at", "<u4").astype(np.int32),
        site=site,
        text=np.frombuffer(b"".join([frame.text for frame in frames]), np.uint8),
        offsets=offsets,
        metadata=_metadata(frames, first_rows),
        raw_rows=raw_rows,
        raw=raw,
    )
    arrival = np.repeat(np.array([item.arrival_ns for item in received], np.int64), counts)
    return Gathered(_file_by_arrival(rows, arrival), notes_of(frames, named))


def column(frames: Sequence[Frame], name: str, dtype: str) -> npt.NDArray[Any]:
    """A column of all frames, one after the other."""
    return np.concatenate([np.frombuffer(getattr(frame, name), dtype) for frame in frames])


def streams_of(
    frames: Sequence[Frame], named: Sequence[tuple[int, FrameStream]]
) -> tuple[I32, I64]:
    """Place of each row's stream, and its seq: consecutive from the stream's first in its frame."""
    pairs = [(place, entry.first_seq) for place, entry in named]
    places, first_seqs = np.array(pairs, np.int64).reshape(-1, 2).T
    base = np.cumsum([0, *(len(frame.streams) for frame in frames)])
    entry = np.concatenate([np.frombuffer(f.stream, "<u2") + base[i] for i, f in enumerate(frames)])
    small = entry.astype(np.uint16) if base[-1] <= 2**16 else entry
    order = np.argsort(small, kind="stable")
    ordered = entry[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    sizes = np.diff(np.append(starts, len(ordered)))
    seq = np.empty(len(entry), np.int64)
    seq[order] = np.arange(len(entry)) - np.repeat(starts - first_seqs[ordered[starts]], sizes)
    return places[entry].astype(np.int32), seq


def _sites(frames: Sequence[Frame]) -> tuple[tuple[CallSite, ...], I32]:
    """Distinct call sites, and 1 + the place of each row's (0: none)."""
    places = {CallSite(None): 0}
    known: dict[int, int] = {}  # by identity: frames share their sites, which `frames` keeps alive
    columns = []
    for frame in frames:
        for site in frame.sites:
            if id(site) not in known:
                known[id(site)] = places.setdefault(_printable(site), len(places))
        local = [0, *(known[id(site)] for site in frame.sites)]
        columns.append(np.array(local, np.int32)[np.frombuffer(frame.site, "<u4")])
    return tuple(places)[1:], np.concatenate(columns)


def _printable(site: CallSite) -> CallSite:
    """A path may hold bytes that are no UTF-8 (lone surrogates); Arrow takes none."""
    names = (site.site, site.function, site.logger)
    return CallSite(*(n and n.encode("utf-8", "backslashreplace").decode() for n in names))


# --- metadata -----------------------------------------------------------------------------------
def _metadata(frames: Sequence[Frame], first_rows: I64) -> tuple[MetadataValues, ...]:
    parts: dict[tuple[str, str], list[tuple[I64, Any]]] = defaultdict(list)
    for frame, first in zip(frames, first_rows.tolist(), strict=True):
        for column in frame.metadata:
            at = np.frombuffer(column.rows, "<u4").astype(np.int64) + first
            if column.type == "str":
                values: Any = _strings(column.values, column.lengths, pa.string())
            else:
                values = np.frombuffer(column.values, "<i8" if column.type == "int" else "<f8")
            parts[column.key, column.type].append((at, values))
    return tuple(
        MetadataValues(
            key,
            type_,
            np.concatenate([at for at, _ in found]),
            pa.concat_arrays([values for _, values in found])
            if type_ == "str"
            else np.concatenate([values for _, values in found]),
        )
        for (key, type_), found in sorted(parts.items())
    )


def _strings(data: bytes, lengths: bytes, type_: Any) -> Any:
    sizes = np.frombuffer(lengths, "<u4")
    offsets = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    return pa.Array.from_buffers(
        type_, len(sizes), [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )


def _raw(frames: Sequence[Frame], first_rows: I64) -> tuple[I64, Any]:
    rows = [
        np.frombuffer(frame.raw_rows, "<u4").astype(np.int64) + first
        for frame, first in zip(frames, first_rows.tolist(), strict=True)
    ]
    values = [_strings(frame.raw, frame.raw_length, pa.binary()) for frame in frames]
    return np.concatenate(rows), pa.concat_arrays(values)


# --- wild times ---------------------------------------------------------------------------------
def _file_by_arrival(rows: Rows, arrival: I64) -> Rows:
    """Rows with a time that can't be get their arrival's, and keep the claim as metadata."""
    imported = np.array([s.certified == "import" for s in rows.streams] or [False])
    past = (rows.ts < arrival - TIME_PAST_NS_MAX) & ~imported[rows.stream]
    wild = (rows.ts < 0) | (rows.ts > arrival + TIME_FUTURE_NS_MAX) | past
    if not wild.any():
        return rows
    at = np.flatnonzero(wild)
    claimed = MetadataValues(schema.TS_CLAIMED_KEY, "int", at, rows.ts[at])
    flags = rows.flags.copy()
    flags[at] |= TS_CLAIMED
    return replace(
        rows,
        ts=np.where(wild, arrival, rows.ts),
        flags=flags,
        metadata=merge_values(claimed, rows.metadata),
    )


def merge_values(
    column: MetadataValues, others: Sequence[MetadataValues]
) -> tuple[MetadataValues, ...]:
    """`others` with the column's values added; where a row has one already, that one stays."""
    same = [c for c in others if (c.key, c.type) == (column.key, column.type)]
    rest = [c for c in others if (c.key, c.type) != (column.key, column.type)]
    if same:
        new = ~np.isin(column.rows, same[0].rows)
        at = np.concatenate([same[0].rows, column.rows[new]])
        order = np.argsort(at, kind="stable")
        if column.type == "str":
            added = [same[0].values, column.values.filter(pa.array(new))]
            values: Any = pa.concat_arrays(added).take(pa.array(order))
        else:
            values = np.concatenate([same[0].values, column.values[new]])[order]
        column = MetadataValues(column.key, column.type, at[order], values)
    return tuple(sorted([*rest, column], key=lambda c: (c.key, c.type)))


def fill_iteration(rows: Rows) -> Rows:
    """Integers under `iteration` or `step` go to the built-in column where that is empty."""
    iteration, kept = rows.iteration, []
    for column in rows.metadata:
        if column.key not in schema.ITERATION_KEYS or column.type != "int":
            kept.append(column)
            continue
        if iteration is rows.iteration:
            iteration = iteration.copy()
        empty = iteration[column.rows] == NO_ITERATION
        iteration[column.rows[empty]] = column.values[empty]
        differs = iteration[column.rows] != column.values
        if differs.any():
            kept.append(replace(column, rows=column.rows[differs], values=column.values[differs]))
    return replace(rows, iteration=iteration, metadata=tuple(kept))


# --- fences, drops, ends ------------------------------------------------------------------------
def notes_of(
    frames: Sequence[Frame], named: Sequence[tuple[int, FrameStream]]
) -> dict[int, StreamNotes]:
    """What frames say of each stream they name, also where that is nothing: the same in whichever order
    they come, and however often. `named`: streams of all frames, one frame after the other."""
    notes: dict[int, StreamNotes] = {}
    for place, entry in named:
        before = notes.setdefault(place, StreamNotes())
        if entry.fences or entry.end or entry.alive_ns is not None:
            alive = [ns for ns in (before.alive_ns, entry.alive_ns) if ns is not None]
            whole = [fence for fence in entry.fences if not is_open(fence, entry)]
            still = [fence.hour for fence in entry.fences if is_open(fence, entry)]
            notes[place] = StreamNotes(
                fences=_fences(before.fences, whole),
                end=max(
                    (end for end in (before.end, entry.end) if end is not None),
                    key=lambda end: end.end_seq,
                    default=None,
                ),
                alive_ns=max(alive, default=None),
                open_hours=tuple(dict.fromkeys((*before.open_hours, *still))),
            )
    for place, drops in _drops(frames, named).items():
        notes[place] = replace(notes[place], drops=tuple(drops))
    return notes


def _fences(before: Sequence[Fence], after: Sequence[Fence]) -> tuple[Fence, ...]:
    """One per hour: what a later frame says of it is what an earlier one said, and more."""
    found = {fence.hour: fence for fence in before}
    for fence in after:
        known = found.get(fence.hour)
        if known is None or _lines_of(fence) >= _lines_of(known):
            found[fence.hour] = fence
    return tuple(found.values())


def _lines_of(fence: Fence) -> int:
    return sum(end - first for first, end in fence.ranges)


def _drops(frames: Sequence[Frame], named: Sequence[tuple[int, FrameStream]]) -> dict[int, Drops]:
    """Those of each frame summed by reason: that a frame came twice shows in the sum over frames."""
    found: dict[int, Drops] = {}
    entries = iter(named)
    for frame in frames:
        lines: dict[tuple[int, str], int] = {}
        for place, entry in islice(entries, len(frame.streams)):
            for drop in entry.drops:
                lines[place, drop.reason] = lines.get((place, drop.reason), 0) + drop.lines
        for (place, reason), count in lines.items():
            drop = Drop(count, reason, (frame.agent, frame.number))
            found.setdefault(place, Drops()).add((drop,))
    return found


def is_open(fence: Fence, entry: FrameStream) -> bool:
    """Whether the fence goes beyond its entry's seqs: the hour has these lines, and may have more."""
    return any(end > entry.first_seq + entry.rows for _, end in fence.ranges)
