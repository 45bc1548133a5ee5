"""What became of each frame: verified, deleted, dropped, missing or altered, from headers and segments. Pure.

A frame's rows are looked for in segments whose bytes are those that were committed. Its header names
the header before it, and its number is the next one: what is not there shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ranklog.model.index import FrameRef
from ranklog.plan.overlap import Ranges, difference, intersection, union

VERIFIED, DELETED, DROPPED = "verified", "deleted", "dropped"
MISSING, ALTERED, UNVERIFIED = "missing", "altered", "unverified"
STATES = (ALTERED, MISSING, UNVERIFIED, DELETED, DROPPED, VERIFIED)  # the worst first


@dataclass(slots=True)
class Evidence:
    """Seq ranges by stream_id: `stored` in segments that are what was committed, `damaged` in others;
    `deleted`. `gone`: numbers of frames by agent that retention removed."""

    stored: dict[str, Ranges] = field(default_factory=dict)
    damaged: dict[str, Ranges] = field(default_factory=dict)
    deleted: Mapping[str, Sequence[tuple[int, int]]] = field(default_factory=dict)
    gone: dict[str, Ranges] = field(default_factory=dict)

    def settle(self) -> None:
        """Sort and coalesce what was gathered."""
        for found in (self.stored, self.damaged, self.gone):
            for name, ranges in found.items():
                found[name] = union(ranges)


@dataclass(frozen=True, slots=True)
class Fate:
    """One frame, or a stretch of missing ones. `lines`: rows that its state is about."""

    agent: str
    number: int
    last: int
    state: str
    rows: int
    lines: int
    dropped: int
    why: str | None = None

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
        }


def fates(frames: Iterable[FrameRef], evidence: Evidence) -> list[Fate]:
    """Every frame by agent and number, missing ones in stretches."""
    chains: dict[str, dict[int, list[FrameRef]]] = {}
    for frame in frames:
        known = chains.setdefault(frame.agent, {}).setdefault(frame.number, [])
        if frame not in known:
            known.append(frame)
    found: list[Fate] = []
    for agent, chain in sorted(chains.items()):
        gone = evidence.gone.get(agent, [])
        have = union([*((number, number + 1) for number in chain), *gone])
        found += [_of_frame(chain, number, evidence) for number in sorted(chain)]
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


def _of_frame(chain: Mapping[int, Sequence[FrameRef]], number: int, evidence: Evidence) -> Fate:
    said = chain[number]
    # an index of before names a frame that another index knows all of
    frame = max(said, key=lambda one: one.parts is not None)
    rows = sum(end - first for _, first, end in frame.parts or ())

    def fate(state: str, lines: int, why: str | None = None) -> Fate:
        return Fate(frame.agent, number, number, state, rows, lines, frame.dropped, why)

    if len({one.header_hash for one in said}) > 1:
        return fate(ALTERED, rows, "two headers have its number")
    before = chain.get(number - 1)
    if before and frame.previous and frame.previous not in {one.header_hash for one in before}:
        return fate(ALTERED, rows, "its header names another one before it")
    if frame.parts is None:
        return fate(UNVERIFIED, 0, "its index keeps no more than its name")
    return _of_rows(frame, evidence, fate)


def _of_rows(frame: FrameRef, evidence: Evidence, fate: Any) -> Fate:
    """The worst that holds of its rows."""
    damaged = missing = deleted = rows = 0
    for stream_id, first, end in frame.parts or ():
        rows += end - first
        gone = evidence.deleted.get(stream_id, ())
        deleted += _size(intersection([(first, end)], gone))
        left = difference([(first, end)], gone)
        left = difference(left, evidence.stored.get(stream_id, ()))
        hurt = _size(intersection(left, evidence.damaged.get(stream_id, ())))
        damaged += hurt
        missing += _size(left) - hurt
    found: Fate
    if damaged:
        found = fate(ALTERED, damaged, "a segment that holds its rows is not what was committed")
    elif missing:
        found = fate(MISSING, missing, "rows are in no segment")
    elif deleted:
        found = fate(DELETED, deleted)
    elif not rows and frame.dropped:
        found = fate(DROPPED, frame.dropped, "by the producer's policy")
    else:
        found = fate(VERIFIED, rows)
    return found


def _size(ranges: Iterable[tuple[int, int]]) -> int:
    return sum(end - first for first, end in ranges)
