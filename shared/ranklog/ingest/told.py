"""Frames of lines tell of streams of points, and the other way round: each goes to its kind's index.

A question for lines reads indexes of lines alone; what a frame of points says of a stream of lines must be
in one of these. There it is as if a frame without rows had said it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ranklog.ingest.records import Received
from ranklog.model.frame import Frame, FrameStream
from ranklog.model.stream import Stream
from ranklog.stream.builder import FrameBuilder
from ranklog.stream.point_builder import PointBuilder

# The streams that hold points, wherever they are named.
POINTS_CHANNEL = "telemetry"


@dataclass(frozen=True, slots=True)
class ByKind:
    """Frames of one kind, and frames without rows that hold what those of the other kind told of it."""

    frames: list[Received]
    told: list[Received]


def by_kind(received: Sequence[Received]) -> tuple[ByKind, ByKind]:
    """Frames of lines, and of points."""
    lines, points = ByKind([], []), ByKind([], [])
    for item in received:
        frame = item.frame
        own, other = (lines, points) if frame.points is None else (points, lines)
        told = _told_of_others(frame)
        if not told:
            own.frames.append(item)
            continue
        kept = tuple(entry for at, entry in enumerate(frame.streams) if at not in told)
        others = tuple(frame.streams[at] for at in told)
        own.frames.append(replace(item, frame=replace(frame, streams=kept)))
        other.told.append(replace(item, frame=_without_rows(frame, others)))
    return lines, points


def _told_of_others(frame: Frame) -> list[int]:
    """Places of entries of the other kind: behind all that have rows, whose places stay."""
    of_points = frame.points is not None
    behind = max((at + 1 for at, entry in enumerate(frame.streams) if entry.rows), default=0)
    found = [
        at
        for at, entry in enumerate(frame.streams)
        if at >= behind and _may_be_told(entry, of_points)
    ]
    if not found:
        return []
    tellers = {_process(e.stream) for at, e in enumerate(frame.streams) if at not in found}
    # of nobody who speaks here: a stream of lines that bears the name
    return [at for at in found if _process(frame.streams[at].stream) in tellers]


def _may_be_told(entry: FrameStream, of_points: bool) -> bool:
    if (entry.stream.channel == POINTS_CHANNEL) == of_points or entry.rows or not entry.fences:
        return False
    return not (entry.drops or entry.end or entry.manifests or entry.alive_ns is not None)


def _process(stream: Stream) -> tuple[str, str, str | None, str]:
    return stream.run, stream.launch, stream.host, stream.incarnation.partition(".")[0]


def _without_rows(frame: Frame, streams: tuple[FrameStream, ...]) -> Frame:
    """Of the other kind."""
    kind = FrameBuilder if frame.points is not None else PointBuilder
    empty = kind(frame.tenant, frame.agent, frame.number, frame.previous).build()
    return replace(empty, streams=streams)
