"""What became of each frame: verified, deleted, dropped, missing or altered, from headers and segments. Pure.

A frame's rows are looked for in segments whose bytes are those that were committed. Its header names
the header before it, and its number is the next one: what is not there shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ranklog.layout.claims import lines_lost
from ranklog.model.index import FrameRef
from ranklog.plan.overlap import Ranges, difference, intersection, union

VERIFIED, DELETED, DROPPED = "verified", "deleted", "dropped"
MISSING, ALTERED, UNVERIFIED = "missing", "altered", "unverified"
STATES = (ALTERED, MISSING, UNVERIFIED, DELETED, DROPPED, VERIFIED)  # the worst first
# Places of one frame that are shown: a frame has few streams, each nearly always one range.
_PLACES_SHOWN_MAX = 100
# What is told of a frame, but for where it stands in its chain.
_Told = Callable[[str, int, "str | None", Sequence[tuple[str, int, int]]], "Fate"]


@dataclass(slots=True)
class Evidence:
    """Seq ranges by stream_id: `stored` in segments that are what was committed, `damaged` in others;
    `altered`: rows that are known to be other ones than ingest put there; `unsummed`: rows of which no sum
    tells; `deleted`. `gone`: numbers of frames by agent that retention removed."""

    stored: dict[str, Ranges] = field(default_factory=dict)
    damaged: dict[str, Ranges] = field(default_factory=dict)
    altered: dict[str, Ranges] = field(default_factory=dict)
    unsummed: dict[str, Ranges] = field(default_factory=dict)
    deleted: Mapping[str, Sequence[tuple[int, int]]] = field(default_factory=dict)
    gone: dict[str, Ranges] = field(default_factory=dict)

    def settle(self) -> None:
        """Sort and coalesce what was gathered."""
        for found in (self.stored, self.damaged, self.altered, self.unsummed, self.gone):
            for name, ranges in found.items():
                found[name] = union(ranges)


@dataclass(frozen=True, slots=True)
class Fate:
    """One frame, or a stretch of missing ones. `lines`: rows that its state is about; `places`: where
    these are, (stream_id, first seq, end seq), of frames that are altered or miss rows."""

    agent: str
    number: int
    last: int
    state: str
    rows: int
    lines: int
    dropped: int
    why: str | None = None
    places: tuple[tuple[str, int, int], ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "agent": self.agent,
            "number": self.number,
            "last": self.last,
            "state": self.state,
            "rows": self.rows,
            "lines": self.lines,
            "dropped": self.dropped,
            "why": self.why,
            "places": [
                {"stream": stream_id, "first_seq": first, "last_seq": end - 1}
                for stream_id, first, end in self.places[:_PLACES_SHOWN_MAX]
            ],
        }


def fates(frames: Iterable[FrameRef], evidence: Evidence) -> list[Fate]:
    """Every frame by agent and number, missing ones in stretches."""
    chains: dict[str, dict[int, list[FrameRef]]] = {}
    frames = list(frames)
    lost = lines_lost(frames)
    for frame in frames:
        known = chains.setdefault(frame.agent, {}).setdefault(frame.number, [])
        if frame not in known:
            known.append(frame)
    found: list[Fate] = []
    for agent, chain in sorted(chains.items()):
        gone = evidence.gone.get(agent, [])
        have = union([*((number, number + 1) for number in chain), *gone])
        found += [_of_frame(chain, number, evidence, lost) for number in sorted(chain)]
        found += [
            Fate(agent, first, end - 1, MISSING, 0, 0, 0, "its header never arrived")
            for first, end in difference([(0, max(chain) + 1)], have)
        ]
        found += [
            Fate(agent, first, end - 1, DELETED, 0, 0, 0, "retention")
            for first, end in difference(gone, union([(n, n + 1) for n in chain]))
        ]
    return sorted(found, key=lambda fate: (fate.agent, fate.number))


def totals(found: Iterable[Fate]) -> dict[str, int]:
    """Frames by state, and rows and lines that were dropped."""
    counts = dict.fromkeys(STATES, 0)
    rows = dropped = 0
    for fate in found:
        counts[fate.state] += fate.last - fate.number + 1
        rows += fate.rows
        dropped += fate.dropped
    return {**counts, "rows": rows, "lines_dropped": dropped}


def _of_frame(
    chain: Mapping[int, Sequence[FrameRef]],
    number: int,
    evidence: Evidence,
    lost: Mapping[str, int],
) -> Fate:
    said = chain[number]
    # an index of before names a frame that another index knows all of
    frame = max(said, key=lambda one: one.parts is not None)
    rows = sum(end - first for _, first, end in frame.parts or ())

    def fate(
        state: str,
        lines: int,
        why: str | None = None,
        places: Sequence[tuple[str, int, int]] = (),
    ) -> Fate:
        told = (frame.agent, number, number, state, rows, lines, frame.dropped, why)
        return Fate(*told, tuple(places))

    if len({one.header_hash for one in said}) > 1:
        return fate(ALTERED, rows, "two headers have its number")
    before = chain.get(number - 1)
    if before and frame.previous and frame.previous not in {one.header_hash for one in before}:
        return fate(ALTERED, rows, "its header names another one before it")
    if frame.header_hash in lost:
        why = "another frame has their numbers, and its lines are shown"
        return fate(ALTERED, lost[frame.header_hash], why)
    if frame.parts is None:
        return fate(UNVERIFIED, 0, "its index keeps no more than its name")
    return _of_rows(frame, evidence, fate)


@dataclass(slots=True)
class _Rows:
    """Of one frame, (stream_id, first seq, end seq) each."""

    altered: list[tuple[str, int, int]] = field(default_factory=list)
    damaged: list[tuple[str, int, int]] = field(default_factory=list)
    missing: list[tuple[str, int, int]] = field(default_factory=list)
    deleted: int = 0
    unsummed: int = 0
    count: int = 0


def _look_for(parts: Iterable[tuple[str, int, int]], evidence: Evidence) -> _Rows:
    """What became of the rows of these parts of a frame."""
    rows = _Rows()
    for stream_id, first, end in parts:
        rows.count += end - first
        gone = evidence.deleted.get(stream_id, ())
        rows.deleted += _size(intersection([(first, end)], gone))
        kept = difference([(first, end)], gone)
        altered = intersection(kept, evidence.altered.get(stream_id, ()))
        left = difference(difference(kept, altered), evidence.stored.get(stream_id, ()))
        damaged = intersection(left, evidence.damaged.get(stream_id, ()))
        rows.unsummed += _size(intersection(kept, evidence.unsummed.get(stream_id, ())))
        for found, ranges in (
            (rows.altered, altered),
            (rows.damaged, damaged),
            (rows.missing, difference(left, damaged)),
        ):
            found += [(stream_id, low, high) for low, high in ranges]
    return rows


def _of_rows(frame: FrameRef, evidence: Evidence, fate: _Told) -> Fate:
    """The worst that holds of its rows."""
    rows = _look_for(frame.parts or (), evidence)
    if rows.altered:
        lines = _count(rows.altered)
        told = fate(ALTERED, lines, "rows are not what the frame held", rows.altered)
    elif rows.damaged:
        why = "a segment that holds its rows is not what was committed"
        told = fate(ALTERED, _count(rows.damaged), why, rows.damaged)
    elif rows.missing:
        told = fate(MISSING, _count(rows.missing), "rows are in no segment", rows.missing)
    elif rows.deleted:
        told = fate(DELETED, rows.deleted, None, ())
    elif not rows.count and frame.dropped:
        told = fate(DROPPED, frame.dropped, "by the producer's policy", ())
    else:
        why_so = "by the segment's hash alone: its index has no sums of rows"
        told = fate(VERIFIED, rows.count, why_so if rows.unsummed else None, ())
    return told


def _count(places: Iterable[tuple[str, int, int]]) -> int:
    return sum(end - first for _, first, end in places)


def _size(ranges: Iterable[tuple[int, int]]) -> int:
    return sum(end - first for first, end in ranges)
