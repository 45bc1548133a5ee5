"""One stream over all the indexes that were read, and which hours these were. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from ranklog.answer.deleted import Gone, finite_end
from ranklog.layout.drops import Drops
from ranklog.limits import HOUR_NS
from ranklog.model.frame import StreamEnd
from ranklog.model.index import StreamEntry
from ranklog.model.stream import Stream
from ranklog.model.tombstone import Deleted
from ranklog.plan.overlap import union

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

    def within(self, hours: Set[int]) -> bool:
        """Whether it has no hour but these."""
        if self.low is None or self.high is None:
            return False
        return self.high - self.low <= len(hours) and hours >= set(range(self.low, self.high))

    def part_of(self, first: int, last: int) -> range:
        """Those of the hours first..last that were read."""
        return range(
            first if self.low is None else max(first, self.low),
            last + 1 if self.high is None else min(last + 1, self.high),
        )


class Part(NamedTuple):
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
class StreamState:
    """One stream over all indexes that were read."""

    stream: Stream
    stream_id: str
    parts: list[Part] = field(default_factory=list)
    fences: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    drops: Drops = field(default_factory=Drops)
    end: StreamEnd | None = None
    ranks: set[int] = field(default_factory=set)  # its own, and those of labelled lines
    reached: int = 0  # first seq that nobody has seen
    last_ts: int | None = None
    first_ts: int | None = None
    alive_ns: int | None = None
    gone: tuple[tuple[int, int], ...] = ()  # deleted
    gone_parts: list[Part] = field(default_factory=list)
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
        if entry.alive_ns is not None:
            self.alive_ns = max(self.alive_ns or 0, entry.alive_ns)
        for fence in entry.fences:
            # what an older heartbeat said of the hour is part of what a newer one says
            self.fences.setdefault(fence.hour, []).extend(fence.ranges)
        if entry.drops:
            self.drops.add(entry.drops)
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
                Part(first, end, high, low, low, high) for first, end in item.ranges
            ]

    def _see(self, ranges: Sequence[tuple[int, int]], low: int, high: int) -> None:
        """Ranges of one entry, ascending, and its times."""
        if len(ranges) == 1:  # nearly always
            self.parts.append(Part(*ranges[0], low, high, low, high))
        else:
            last = len(ranges) - 1
            self.parts += [
                Part(first, end, high if i else low, low if i < last else high, low, high)
                for i, (first, end) in enumerate(ranges)
            ]
        self.reached = max(self.reached, ranges[-1][1])
        if self.last_ts is None or high > self.last_ts:
            self.last_ts = high
        if self.first_ts is None or low < self.first_ts:
            self.first_ts = low


def stream_states(entries: Iterable[StreamEntry]) -> dict[str, StreamState]:
    """Entries of many segments folded by stream."""
    states: dict[str, StreamState] = {}
    for entry in entries:
        state = states.get(entry.stream_id)
        if state is None:
            state = states[entry.stream_id] = StreamState(entry.stream, entry.stream_id)
        state.add(entry)
    return states
