"""Frames of a disk stream as plain lines, for tests."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from pathlib import Path

from ranklog.model.frame import NO_GROUP, NO_ITERATION, NO_RANK, STREAM_RANK, Frame, FrameStream
from ranklog.stream.disk import DiskStream
from ranklog.stream.frames import decode_frame
from tests.point_frames import SeenPoint, points_of


@dataclass(frozen=True)
class Seen:
    """A line as a frame has it; `rank` after the stream's is put in."""

    channel: str
    rank: int | None
    seq: int
    level: int | None
    text: str
    group: int | None
    iteration: int | None
    site: str | None
    logger: str | None
    metadata: tuple[tuple[str, object], ...]
    flags: int
    ts_ns: int
    incarnation: str


def frames_in(path: Path) -> list[Frame]:
    return [decode_frame(record.data) for record in DiskStream(path).read()]


def streams_in(path: Path) -> list[FrameStream]:
    return [entry for frame in frames_in(path) for entry in frame.streams]


def lines_in(path: Path) -> list[Seen]:
    return [line for frame in frames_in(path) for line in lines_of(frame)]


def lines_of(frame: Frame) -> list[Seen]:
    if frame.points is not None:
        return _records_of(frame)
    n = frame.rows
    unpack = struct.unpack
    which = unpack(f"<{n}H", frame.stream)
    next_seq = [entry.first_seq for entry in frame.streams]
    metadata = _metadata(frame)
    columns = zip(
        unpack(f"<{n}q", frame.ts),
        unpack(f"<{n}h", frame.level),
        unpack(f"<{n}I", frame.site),
        unpack(f"<{n}H", frame.flags),
        unpack(f"<{n}I", frame.group),
        unpack(f"<{n}i", frame.rank),
        unpack(f"<{n}q", frame.iteration),
        unpack(f"<{n}I", frame.text_length),
        strict=True,
    )
    lines, at = [], 0
    for row, (ts, level, site, flags, group, rank, iteration, length) in enumerate(columns):
        stream = frame.streams[which[row]].stream
        seq = next_seq[which[row]]
        next_seq[which[row]] += 1
        call_site = frame.sites[site - 1] if site else None
        lines.append(
            Seen(
                channel=stream.channel,
                rank={STREAM_RANK: stream.rank, NO_RANK: None}.get(rank, rank),
                seq=seq,
                level=level or None,
                text=frame.text[at : at + length].decode(),
                group=None if group == NO_GROUP else seq - group,
                iteration=None if iteration == NO_ITERATION else iteration,
                site=call_site.site if call_site else None,
                logger=call_site.logger if call_site else None,
                metadata=tuple(sorted(metadata[row].items())),
                flags=flags,
                ts_ns=ts,
                incarnation=stream.incarnation,
            )
        )
        at += length
    return lines


def _records_of(frame: Frame) -> list[Seen]:
    """Records of telemetry as if each were a line of its values; what was not measured is left out."""
    records: dict[tuple[str, int], list[SeenPoint]] = {}
    for point in points_of(frame):
        records.setdefault((point.incarnation, point.seq), []).append(point)
    return [_record(points) for points in records.values()]


def _record(points: list[SeenPoint]) -> Seen:
    first = points[0]
    dims = json.loads(first.dims)
    values = {
        point.series: point.value if point.summary is None else point.summary
        for point in points
        if point.value is not None or point.summary is not None
    }
    shown = {**values, **{key: value for key, value in dims.items() if key not in values}}
    context = json.loads(first.context or "{}")
    return Seen(
        channel=first.channel,
        rank=first.rank,
        seq=first.seq,
        level=None,
        text=" ".join(
            f"{name}={value:.10g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in shown.items()
        ),
        group=None,
        iteration=first.iteration,
        site=None,
        logger=None,
        metadata=tuple(sorted({**context, **shown}.items(), key=lambda item: item[0])),
        flags=0,
        ts_ns=first.ts,
        incarnation=first.incarnation,
    )


def _metadata(frame: Frame) -> list[dict[str, object]]:
    values: list[dict[str, object]] = [{} for _ in range(frame.rows)]
    for column in frame.metadata:
        rows = struct.unpack(f"<{len(column.rows) // 4}I", column.rows)
        if column.type == "str":
            at = 0
            lengths = struct.unpack(f"<{len(rows)}I", column.lengths)
            for row, length in zip(rows, lengths, strict=True):
                values[row][column.key] = column.values[at : at + length].decode()
                at += length
        else:
            code = "q" if column.type == "int" else "d"
            for row, value in zip(
                rows, struct.unpack(f"<{len(rows)}{code}", column.values), strict=True
            ):
                values[row][column.key] = value
    return values
