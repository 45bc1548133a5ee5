"""How complete an answer is, from the stream tables of the indexes that were read.

The reader loads every index of the hours it touches and every late one, so that what a stream has in
these hours is known. A hole in its sequence numbers is a gap when the missing lines must lie there:

- the whole run was read: every hole below the highest seq, fence or end that is known;
- a range of hours was read: what a fence says of one of them and nobody has; and, for producers and
  agents, whose time never runs back within a stream, a hole whose neighbours bound it to that range.

A rank of the world of which nothing was read is *absent*: whether it was silent in these hours or
what it said has not arrived, nobody can tell. What is not proven is *behind*, not complete. Streams of
kind `arrival` have no sequence: no gaps. What was deleted is not missing; it is counted. Nor is a line
missing that two frames had with different content: one of them is shown, and it is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from ranklog.answer.deleted import NOTHING, Gone, came_later, deleted_members
from ranklog.answer.life import Pulse, quiet_streams
from ranklog.answer.stream_state import Part, StreamState, Window, stream_states
from ranklog.limits import HOUR_NS, WORLD_RANKS_MAX
from ranklog.model.answer import Completeness
from ranklog.model.index import StreamEntry
from ranklog.model.stream import DENSE
from ranklog.plan.overlap import difference, union

__all__ = [
    "CERTIFICATES",
    "Declared",
    "Window",
    "absent_ranks",
    "judge",
    "judge_streams",
    "with_skipped",
]

# Ranks by (run, launch, attempt).
Declared = Mapping[tuple[str, str, int], frozenset[int]]
# Half-open seq ranges by stream_id.
Contested = Mapping[str, Sequence[tuple[int, int]]]
NO_CONFLICT: Contested = MappingProxyType({})
CERTIFICATES = ("none", "import", "agent", "producer")  # weakest first
_MONOTONE = ("producer", "agent")


def judge(
    entries: Iterable[StreamEntry],
    window: Window,
    skipped: Sequence[dict[str, Any]] = (),
    declared: Declared | None = None,
    gone: Gone = NOTHING,
    contested: Contested = NO_CONFLICT,
) -> Completeness:
    """Completeness of what was read; `skipped`: {"segment", "reason"} of what could not be."""
    judged = judge_streams(entries, window, declared, gone, contested)
    return with_skipped(judged, skipped)


def with_skipped(judged: Completeness, skipped: Sequence[dict[str, Any]]) -> Completeness:
    """The same, and what one query could not read. `judged` stays as it is."""
    result = replace(judged, skipped_tasks=list(skipped))
    result.state = _worst(result)
    return result


def judge_streams(
    entries: Iterable[StreamEntry],
    window: Window,
    declared: Declared | None = None,
    gone: Gone = NOTHING,
    contested: Contested = NO_CONFLICT,
) -> Completeness:
    """What the stream tables alone say. `declared`: ranks that manifests speak of, by attempt;
    `gone`: what was deleted, which is not missing; `contested`: lines that two frames had."""
    states = stream_states(entries)
    if gone.tombstones:
        deleted = gone.by_stream()
        for state in states.values():
            state.forget(gone, deleted.get(state.stream_id, ()))
    result = Completeness(streams=len(states))
    result.certified = _weakest(state.stream.certified for state in states.values())
    marks: list[int] = []
    for state in sorted(states.values(), key=_place):
        gaps, doubt = _gaps(state, window)
        result.gaps += [_named(state, first_seq=a, last_seq=b - 1) for a, b in gaps]
        if doubt is not None or not _proven(state, window):
            result.behind.append(_named(state, seq=state.reached, ts_ns=state.last_ts))
        result.dropped += [
            _named(state, lines=lines, reason=why) for why, lines in state.drops.by_reason().items()
        ]
        result.conflicts += [
            _named(state, first_seq=a, last_seq=b - 1) for a, b in _conflicts(state, contested)
        ]
        mark = _watermark(state, window, gaps, doubt)
        if mark is not None:
            marks.append(mark)
    result.absent = absent_ranks(states.values(), window, declared, gone)
    result.deleted = _deleted(states, window, gone)
    result.quiet = quiet_streams(_pulse(state) for state in states.values() if _is_alive(state))
    result.since = [_since(state) for state in states.values() if _is_foreign(state)]
    result.watermark_ns = min(marks, default=None)
    result.state = _worst(result)
    return result


def _conflicts(state: StreamState, contested: Contested) -> list[tuple[int, int]]:
    """Lines of which one of two versions is shown; none of what was deleted."""
    found = contested.get(state.stream_id, ())
    return [] if state.hidden else difference(found, state.gone)


def _is_alive(state: StreamState) -> bool:
    """Whether a process stands behind it that sends heartbeats."""
    return state.stream.certified in _MONOTONE and not state.hidden


def _pulse(state: StreamState) -> Pulse:
    return Pulse(
        state.stream,
        state.stream_id,
        state.last_ts,
        state.alive_ns,
        owed=_fenced(state) > state.reached,
        ended=state.end is not None,
        first_ns=state.first_ts,
    )


def _is_foreign(state: StreamState) -> bool:
    """Whether nobody numbered its lines as they were said: imported, or of a foreign agent."""
    return state.stream.certified not in _MONOTONE or state.stream.kind != DENSE


def _since(state: StreamState) -> dict[str, Any]:
    """From where on it is certified: what was before its first line nobody can tell."""
    certified = state.stream.certified
    return _named(
        state,
        certified=certified if certified in CERTIFICATES else "none",
        kind=state.stream.kind,
        ts_ns=state.first_ts,
    )


def _deleted(states: Mapping[str, StreamState], window: Window, gone: Gone) -> list[dict[str, Any]]:
    if not gone.tombstones:
        return []
    rows = gone.rows(window)
    later = {
        state.stream_id: (state.stream.rank, lines)
        for state in states.values()
        if state.hidden and (lines := came_later(state.seen, state.gone))
    }
    return deleted_members(rows, later)


def _worst(result: Completeness) -> str:
    if result.skipped_tasks:
        return "partial"
    if result.gaps:
        return "gaps"
    return "behind" if result.behind or result.absent or result.waiting else "complete"


def _weakest(certificates: Iterable[str]) -> str:
    """A word that this ranklog does not know certifies nothing."""
    known = (word if word in CERTIFICATES else "none" for word in certificates)
    return min(known, key=CERTIFICATES.index, default="none")


def _place(state: StreamState) -> tuple[str, str, int, int, str]:
    stream = state.stream
    rank = -1 if stream.rank is None else stream.rank
    return (stream.run, stream.launch, stream.attempt, rank, state.stream_id)


def _named(state: StreamState, **members: Any) -> dict[str, Any]:
    return {"stream": state.stream_id, "rank": state.stream.rank, **members}


def _gaps(state: StreamState, window: Window) -> tuple[list[tuple[int, int]], int | None]:
    """Missing seq ranges that must lie in what was read; the first seq that is missing and might."""
    if state.stream.kind != DENSE or state.hidden:
        return [], None
    if window.whole:
        end = max(state.reached, state.end.end_seq if state.end else 0, _fenced(state))
        return difference([(0, end)], state.known), None
    expected = [r for hour, ranges in state.fences.items() if window.has(hour) for r in ranges]
    doubt = None
    if state.stream.certified in _MONOTONE:
        holes, doubt = _holes(state, window)
        expected += holes
    return difference(union(expected), state.known), doubt


def _fenced(state: StreamState) -> int:
    return max((end for ranges in state.fences.values() for _, end in ranges), default=0)


def _holes(state: StreamState, window: Window) -> tuple[list[tuple[int, int]], int | None]:
    """Holes whose neighbours' times bound them to hours that were read; where the first one begins that may
    reach into them. What a fence says of an hour that was not read is a neighbour, too."""
    outside = [
        Part(first, end, hour * HOUR_NS - 1, (hour + 1) * HOUR_NS, 0, 0)
        for hour, ranges in state.fences.items()
        if not window.has(hour)
        for first, end in ranges
    ]
    holes: list[tuple[int, int]] = []
    reached, doubt = 0, None
    at: int | None = None  # nothing is known of when the lines before the first one were
    for part in sorted([*state.parts, *outside, *state.gone_parts]):
        if part.first > reached and difference([(reached, part.first)], state.gone):
            last = part.before // HOUR_NS
            first = window.low or 0 if at is None else min(at // HOUR_NS, last)
            bounded = window.has(last) and (window.low is None if at is None else window.has(first))
            if bounded:
                holes.append((reached, part.first))
            elif any(hour not in state.fences for hour in window.part_of(first, last)):
                doubt = reached if doubt is None else doubt
        if part.end >= reached:
            reached, at = part.end, part.after if at is None else max(at, part.after)
    return holes, doubt


def _proven(state: StreamState, window: Window) -> bool:
    """Whether nothing can be missing after the last line that was seen, up to the window's end."""
    if state.hidden:
        return True
    # lines behind the end: an imported file has grown, and its import was cut short
    ended = state.end is not None and state.reached <= state.end.end_seq
    if ended and state.end is not None and state.end.end_seq <= max(state.reached, _fenced(state)):
        return True
    if ended and window.whole:
        return True  # what is missing below the end is a gap, and listed
    if window.to_ns is None:
        return False
    last_hour = (window.to_ns - 1) // HOUR_NS
    if any(hour == last_hour or (hour > last_hour and r) for hour, r in state.fences.items()):
        return True
    last = state.last_ts
    return last is not None and last >= window.to_ns and state.stream.certified in _MONOTONE


def _watermark(
    state: StreamState, window: Window, gaps: Sequence[tuple[int, int]], doubt: int | None
) -> int | None:
    """Everything of the stream before this time is stored; None: it sets no bound."""
    missing = [first for first in (doubt, *(first for first, _ in gaps[:1])) if first is not None]
    if not missing and _proven(state, window):
        return window.to_ns if window.to_ns is not None else state.last_ts
    before = min(missing, default=state.reached)
    # not `high`: of an entry with several ranges it is the last one's, behind the hole
    return max((part.after for part in state.parts if part.end <= before), default=0)


def absent_ranks(
    states: Iterable[StreamState],
    window: Window,
    declared: Declared | None = None,
    gone: Gone = NOTHING,
) -> list[int]:
    """Ranks of an attempt's world, or that a manifest speaks of, of which no stream says anything. What
    retention removed of the hours that were read was said.

    A world that is said to be larger than any is taken for a mistake.
    """
    expected: dict[tuple[str, str, int], set[int]] = {
        key: set(ranks) for key, ranks in (declared or {}).items()
    }
    worlds: dict[tuple[str, str, int], int] = {}
    seen = gone.ranks(window)
    for state in states:
        stream = state.stream
        key = (stream.run, stream.launch, stream.attempt)
        size = stream.world_size or 0
        worlds[key] = max(worlds.get(key, 0), size if size <= WORLD_RANKS_MAX else 0)
        if state.is_named_only:
            expected.setdefault(key, set()).update(state.ranks)
        else:
            seen.setdefault(key, set()).update(state.ranks)
    missing: set[int] = set()
    for key in worlds.keys() | expected.keys():
        if gone.tombstones.hides_launch(*key[:2]):
            continue
        world = expected.get(key, set()) | set(range(worlds.get(key, 0)))
        missing |= world - seen.get(key, set())
    return sorted(missing)
