"""Frames of points from plain records, and plain records from frames: what tests compare with."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ranklog.model.frame import NO_ITERATION, NO_RANK, STREAM_RANK, Fence, Frame, StreamEnd
from ranklog.model.point import NOT_MEASURED, canonical_json
from ranklog.model.stream import Stream
from ranklog.stream.point_batch import PointBatch
from ranklog.stream.point_builder import PointBuilder

T0 = 1_772_323_200_000_000_000  # 2026-03-01T00:00:00Z
STREAM = Stream("acme", "llama", "17", 0, "gpu-1", 3, 3, "telemetry", "0")


@dataclass(frozen=True, slots=True)
class Record:
    """One call: values by name (None: not measured, a dict: a summary), dimensions, context."""

    values: Mapping[str, Any]
    dims: Mapping[str, Any] = field(default_factory=dict)
    ts: int = T0
    iteration: int | None = None
    stream: Stream = STREAM
    rank: int = STREAM_RANK
    context: Mapping[str, Any] | None = None


def batch_of(records: Sequence[Record]) -> PointBatch:
    """Consecutive records of one stream."""
    sets = {
        at: (canonical_json(record.dims), tuple(record.values)) for at, record in enumerate(records)
    }
    values: array[float] = array("d")
    missing: list[int] = []
    summaries: list[tuple[int, Any]] = []
    for record in records:
        for value in record.values.values():
            if value is None or value == NOT_MEASURED:
                missing.append(len(values))
            elif isinstance(value, dict):
                summaries.append((len(values), value))
            values.append(float(value) if isinstance(value, (int, float)) else float("nan"))
    whole = range(len(records))
    iterations = [NO_ITERATION if r.iteration is None else r.iteration for r in records]
    return PointBatch(
        ts=array("q", [record.ts for record in records]),
        rank=array("i", [record.rank for record in records]),
        iteration=array("q", iterations),
        set=list(whole),
        sets=sets,
        context=list(whole),
        contexts={
            at: None if record.context is None else canonical_json(record.context)
            for at, record in enumerate(records)
        },
        size=[len(record.values) for record in records],
        values=values,
        missing=missing,
        summaries=summaries,
    )


def point_frame(
    records: Sequence[Record],
    *,
    first_seq: Mapping[Stream, int] | None = None,
    ends: Sequence[Stream] = (),
    fences: Mapping[Stream, Sequence[Fence]] | None = None,
    number: int = 1,
    tenant: str = "acme",
) -> Frame:
    """A frame of the records, each stream's with consecutive seq from `first_seq` (0)."""
    builder = PointBuilder(tenant, "0a", number, "")
    seqs = dict(first_seq or {})
    for record in records:
        seq = seqs.get(record.stream, 0)
        builder.extend(record.stream, seq, batch_of([record]))
        seqs[record.stream] = seq + 1
    for stream, found in (fences or {}).items():
        for fence in found:
            builder.fence(stream, seqs.get(stream, 0), fence)
    for stream in ends:
        builder.end(stream, StreamEnd(seqs.get(stream, 0), 0))
    return builder.build()


@dataclass(frozen=True, slots=True)
class SeenPoint:
    """A value as a frame has it; `rank` after the stream's is put in. Absent values are None."""

    channel: str
    rank: int | None
    seq: int
    ts: int
    iteration: int | None
    series: str
    dims: str
    value: float | None
    summary: dict[str, Any] | None
    context: str | None
    incarnation: str


def points_of(frame: Frame) -> list[SeenPoint]:
    """The points of a frame, one by one."""
    points = frame.points
    if points is None:
        return []
    n = frame.rows
    which, next_seq = struct.unpack(f"<{n}H", frame.stream), [e.first_seq for e in frame.streams]
    ts, rank = struct.unpack(f"<{n}q", frame.ts), struct.unpack(f"<{n}i", frame.rank)
    iteration = struct.unpack(f"<{n}q", frame.iteration)
    sets, of_record = _sets(points), struct.unpack(f"<{n}I", points.set)
    contexts = [None, *_texts(points.context_length, points.contexts)]
    context = struct.unpack(f"<{n}I", points.context)
    values = struct.unpack(f"<{len(points.values) // 8}d", points.values)
    missing = set(struct.unpack(f"<{len(points.missing) // 4}I", points.missing))
    summaries = _summaries(points)
    found, at = [], 0
    for row in range(n):
        stream = frame.streams[which[row]].stream
        seq = next_seq[which[row]]
        next_seq[which[row]] += 1
        own = {STREAM_RANK: stream.rank, NO_RANK: None}.get(rank[row], rank[row])
        step = None if iteration[row] == NO_ITERATION else iteration[row]
        dims, names = sets[of_record[row]]
        for name in names:
            absent = at in missing or at in summaries
            found.append(
                SeenPoint(
                    *(stream.channel, own, seq, ts[row], step, name, dims),
                    *(None if absent else values[at], summaries.get(at), contexts[context[row]]),
                    stream.incarnation,
                )
            )
            at += 1
    return found


def _texts(lengths: bytes, data: bytes) -> list[str]:
    found, at = [], 0
    for (length,) in struct.iter_unpack("<I", lengths):
        found.append(data[at : at + length].decode())
        at += length
    return found


def _sets(points: Any) -> list[tuple[str, list[str]]]:
    names, dims = _texts(points.name_length, points.names), _texts(points.dims_length, points.dims)
    of_names = [i for (i,) in struct.iter_unpack("<I", points.set_name)]
    found, at = [], 0
    for (dim,), (size,) in zip(
        struct.iter_unpack("<I", points.set_dims),
        struct.iter_unpack("<I", points.set_size),
        strict=True,
    ):
        found.append((dims[dim], [names[i] for i in of_names[at : at + size]]))
        at += size
    return found


def _summaries(points: Any) -> dict[int, dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    at_quantile = at_bin = 0
    for i, (place,) in enumerate(struct.iter_unpack("<I", points.summary)):
        (flags,) = struct.unpack_from("<H", points.summary_flags, 2 * i)
        counts = struct.unpack_from("<3q", points.summary_counts, 24 * i)
        numbers = struct.unpack_from("<5d", points.summary_numbers, 40 * i)
        (quantiles,) = struct.unpack_from("<I", points.quantile_size, 4 * i)
        (bins,) = struct.unpack_from("<I", points.bin_size, 4 * i)
        pairs = struct.unpack_from(f"<{2 * quantiles}d", points.quantiles, 16 * at_quantile)
        edges = 2 * bins + 1 if bins else 0
        whole = struct.unpack_from(f"<{edges}d", points.histograms, 8 * at_bin)
        at_quantile, at_bin = at_quantile + quantiles, at_bin + edges
        one = dict(zip(("count", "nan", "inf"), counts, strict=True))
        for bit, name in enumerate(("min", "max", "mean", "std", "norm")):
            one[name] = numbers[bit] if flags >> bit & 1 else None
        one["quantiles"] = (
            dict(zip(pairs[::2], pairs[1::2], strict=True)) if flags >> 5 & 1 else None
        )
        histogram = {"edges": list(whole[: bins + 1]), "counts": list(whole[bins + 1 :])}
        one["histogram"] = histogram if flags >> 6 & 1 else None
        found[place] = one
    return found
