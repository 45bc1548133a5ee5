"""How complete an answer is, from the stream tables of the indexes that were read.

The reader loads every index of the hours it touches and every late one, so that what a stream has in
these hours is known. A hole in its sequence numbers is a gap when the missing lines must lie there:

- the whole run was read: every hole below the highest seq, fence or end that is known;
- a range of hours was read: what a fence says of one of them and nobody has; and, for producers and
  agents, whose time never runs back within a stream, a hole whose neighbours bound it to that range.

A rank of the world of which nothing was read is *absent*: whether it was silent in these hours or
what it said has not arrived, nobody can tell. What is not proven is *behind*, not complete. Streams of kind `arrival` have no sequence: no gaps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ranklog.answer.deleted import NOTHING, Gone, came_later, deleted_members, finite_end
from ranklog.limits import HOUR_NS, WORLD_RANKS_MAX
from ranklog.model.answer import Completeness
from ranklog.model.frame import StreamEnd
from ranklog.model.index import StreamEntry
from ranklog.model.stream import DENSE, Stream
from ranklog.model.tombstone import Deleted
from ranklog.plan.overlap import difference, union

# Ranks by (run, launch, attempt).
Declared = Mapping[tuple[str, str, int], frozenset[int]]
CERTIFICATES = ("none", "import", "agent", "producer")  # weakest first
_MONOTONE = ("producer", "agent")
_NO_TIME = 2**62  # later than any line


@dataclass(frozen=True, slots=True)
class Window:
    """What was read: every index of the hours [low, high), None being open. `to_ns` None: up to now."""

    low: int | None = None
    high: int | None = None
    to_ns: int | None = None

    @classmethod
    def of(cls, from_ns: int | None, to_ns: int | None) -> Window:
        """The whole hours that [from_ns, to_ns) touches."""
        low = None if from_ns is None else from_ns // HOUR_NS
        return cls(low, None if to_ns is None else -(-to_ns // HOUR_NS), to_ns)

    @property
    def whole(self) -> bool:
        """Everything of the runs in scope."""
        return self.low is None and self.high is None

    def has(self, hour: int) -> bool:
        return (self.low is None or hour >= self.low) and (self.high is None or hour < self.high)

    def part_of(self, first: int, last: int) -> range:
        """Those of the hours first..last that were read."""
        return range(
            first if self.low is None else max(first, self.low),
            last + 1 if self.high is None else min(last + 1, self.high),
        )


class _Part(NamedTuple):
    """A seq range that was seen. Lines before it are not later than `before`, lines after it not
    earlier than `after` (where time does not run back)."""

    first: int
    end: int
    before: int
    after: int
    low: int  # hull of the entry's times
    high: int


def _times_of(hour: int) -> tuple[int, int]:
    """First and last ns of an hour."""
    return hour * HOUR_NS, (hour + 1) * HOUR_NS - 1


@dataclass(slots=True)
class _StreamState:
    """One stream over all indexes that were read."""

    stream: Stream
    stream_id: str
    parts: list[_Part] = field(default_factory=list)
    fences: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    drops: dict[str, int] = field(default_factory=dict)
    end: StreamEnd | None = None
    ranks: set[int] = field(default_factory=set)  # its own, and those of labelled lines
    reached: int = 0  # first seq that nobody has seen
    last_ts: int | None = None
    gone: tuple[tuple[int, int], ...] = ()  # deleted
    gone_parts: list[_Part] = field(default_factory=list)
    hidden: bool = False  # its launch was deleted, whatever comes

    def __post_init__(self) -> None:
        if self.stream.rank is not None:
            self.ranks.add(self.stream.rank)

    @property
    def is_named_only(self) -> bool:
        """A manifest named it, and it never said anything: not even that there was nothing to say."""
        return not (self.parts or self.fences or self.drops or self.end)

    def add(self, entry: StreamEntry) -> None:
        if entry.ranks:
            self.ranks.update(rank for rank, _ in entry.ranks)
        if entry.ranges and entry.min_ts is not None and entry.max_ts is not None:
            self._see(entry.ranges, entry.min_ts, entry.max_ts)
        for fence in entry.fences:
            # what an older heartbeat said of the hour is part of what a newer one says
            self.fences.setdefault(fence.hour, []).extend(fence.ranges)
        for drop in entry.drops:
            self.drops[drop.reason] = self.drops.get(drop.reason, 0) + drop.lines
        if entry.end is not None and (self.end is None or entry.end.end_seq > self.end.end_seq):
            self.end = entry.end

    @property
    def seen(self) -> list[tuple[int, int]]:
        return union([(part.first, part.end) for part in self.parts])

    @property
    def known(self) -> list[tuple[int, int]]:
        """What was seen, and what is not missing as it was deleted."""
        return union([*self.seen, *self.gone]) if self.gone else self.seen

    def forget(self, gone: Gone, deleted: Sequence[Deleted]) -> None:
        """Some of it was deleted, and may have left the store. The hours of deleted rows bound their
        neighbours' as the hours of fences do."""
        self.gone, self.hidden = gone.ranges(self.stream_id), gone.hides(self.stream)
        self.reached = max(self.reached, finite_end(self.gone))
        for item in deleted:
            low, high = (0, _NO_TIME) if item.hour is None else _times_of(item.hour)
            self.gone_parts += [
                _Part(first, end, high, low, low, high) for first, end in item.ranges
            ]

    def _see(self, ranges: Sequence[tuple[int, int]], low: int, high: int) -> None:
        """Ranges of one entry, ascending, and its times."""
        if len(ranges) == 1:  # nearly always
            self.parts.append(_Part(*ranges[0], low, high, low, high))
        else:
            last = len(ranges) - 1
            self.parts += [
                _Part(first, end, high if i else low, low if i < last else high, low, high)
                for i, (first, end) in enumerate(ranges)
            ]
        self.reached = max(self.reached, ranges[-1][1])
        if self.last_ts is None or high > self.last_ts:
            self.last_ts = high


def stream_states(entries: Iterable[StreamEntry]) -> dict[str, _StreamState]:
    """Entries of many segments folded by stream."""
    states: dict[str, _StreamState] = {}
    for entry in entries:
        state = states.get(entry.stream_id)
        if state is None:
            state = states[entry.stream_id] = _StreamState(entry.stream, entry.stream_id)
        state.add(entry)
    return states


def judge(
    entries: Iterable[StreamEntry],
    window: Window,
    skipped: Sequence[dict[str, Any]] = (),
    declared: Declared | None = None,
    gone: Gone = NOTHING,
) -> Completeness:
    """Completeness of what was read; `skipped`: {"segment", "reason"} of what could not be."""
    return with_skipped(judge_streams(entries, window, declared, gone), skipped)


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
) -> Completeness:
    """What the stream tables alone say. `declared`: ranks that manifests speak of, by attempt;
    `gone`: what was deleted, which is not missing."""
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
        if doubt or not _proven(state, window):
            result.behind.append(_named(state, seq=state.reached, ts_ns=state.last_ts))
        result.dropped += [
            _named(state, lines=lines, reason=why) for why, lines in sorted(state.drops.items())
        ]
        mark = _watermark(state, window, gaps)
        if mark is not None:
            marks.append(mark)
    result.absent = absent_ranks(states.values(), declared, gone)
    result.deleted = _deleted(states, window, gone)
    result.watermark_ns = min(marks, default=None)
    result.state = _worst(result)
    return result


def _deleted(
    states: Mapping[str, _StreamState], window: Window, gone: Gone
) -> list[dict[str, Any]]:
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
    return "behind" if result.behind or result.absent else "complete"


def _weakest(certificates: Iterable[str]) -> str:
    """A word that this ranklog does not know certifies nothing."""
    known = (word if word in CERTIFICATES else "none" for word in certificates)
    return min(known, key=CERTIFICATES.index, default="none")


def _place(state: _StreamState) -> tuple[str, str, int, int, str]:
    stream = state.stream
    rank = -1 if stream.rank is None else stream.rank
    return (stream.run, stream.launch, stream.attempt, rank, state.stream_id)


def _named(state: _StreamState, **members: Any) -> dict[str, Any]:
    return {"stream": state.stream_id, "rank": state.stream.rank, **members}


def _gaps(state: _StreamState, window: Window) -> tuple[list[tuple[int, int]], bool]:
    """Missing seq ranges that must lie in what was read; whether more might."""
    if state.stream.kind != DENSE or state.hidden:
        return [], False
    if window.whole:
        end = max(state.reached, state.end.end_seq if state.end else 0, _fenced(state))
        return difference([(0, end)], state.known), False
    expected = [r for hour, ranges in state.fences.items() if window.has(hour) for r in ranges]
    doubt = False
    if state.stream.certified in _MONOTONE:
        holes, doubt = _holes(state, window)
        expected += holes
    return difference(union(expected), state.known), doubt


def _fenced(state: _StreamState) -> int:
    return max((end for ranges in state.fences.values() for _, end in ranges), default=0)


def _holes(state: _StreamState, window: Window) -> tuple[list[tuple[int, int]], bool]:
    """Holes whose neighbours' times bound them to hours that were read; whether another one may
    reach into them. What a fence says of an hour that was not read is a neighbour, too."""
    outside = [
        _Part(first, end, hour * HOUR_NS - 1, (hour + 1) * HOUR_NS, 0, 0)
        for hour, ranges in state.fences.items()
        if not window.has(hour)
        for first, end in ranges
    ]
    holes: list[tuple[int, int]] = []
    reached, doubt = 0, False
    at: int | None = None  # nothing is known of when the lines before the first one were
    for part in sorted([*state.parts, *outside, *state.gone_parts]):
        if part.first > reached and difference([(reached, part.first)], state.gone):
            last = part.before // HOUR_NS
            first = window.low or 0 if at is None else min(at // HOUR_NS, last)
            bounded = window.has(last) and (window.low is None if at is None else window.has(first))
            if bounded:
                holes.append((reached, part.first))
            elif any(hour not in state.fences for hour in window.part_of(first, last)):
                doubt = True
        if part.end >= reached:
            reached, at = part.end, part.after if at is None else max(at, part.after)
    return holes, doubt


def _proven(state: _StreamState, window: Window) -> bool:
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


def _watermark(state: _StreamState, window: Window, gaps: Sequence[tuple[int, int]]) -> int | None:
    """Everything of the stream before this time is stored; None: it sets no bound."""
    if not gaps and _proven(state, window):
        return window.to_ns if window.to_ns is not None else state.last_ts
    before = gaps[0][0] if gaps else state.reached
    # not `high`: of an entry with several ranges it is the last one's, behind the hole
    return max((part.after for part in state.parts if part.end <= before), default=0)


def absent_ranks(
    states: Iterable[_StreamState], declared: Declared | None = None, gone: Gone = NOTHING
) -> list[int]:
    """Ranks of an attempt's world, or that a manifest speaks of, of which no stream says anything. What
    was deleted was said.

    A world that is said to be larger than any is taken for a mistake.
    """
    expected: dict[tuple[str, str, int], set[int]] = {
        key: set(ranks) for key, ranks in (declared or {}).items()
    }
    worlds: dict[tuple[str, str, int], int] = {}
    seen = gone.ranks()
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
