"""What a tail knows of streams: which lines it has shown, which have arrived, what it holds back.

A stream's lines are shown in the order of their seq. Behind a hole they wait HOLD_NS for what is
missing; then the hole is marked, and what comes for it later is shown as late. Pure: no clock, no I/O.

Shapes: ranges are half-open ranges of seq; `shown` is sorted and coalesced.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ranklog import limits
from ranklog.limits import SECOND_NS
from ranklog.model.index import StreamEntry
from ranklog.model.stream import DENSE
from ranklog.plan.overlap import Ranges, difference, union

HOLD_NS = 5 * SECOND_NS


@dataclass(frozen=True, slots=True)
class Arrived:
    """Lines that are stored and were not shown: of one index, `late` if later ones were shown."""

    first: int
    end: int
    index: str
    at_ns: int
    late: bool = False


@dataclass(frozen=True, slots=True)
class Hole:
    """Lines that did not arrive in time."""

    stream_id: str
    run_id: str
    rank: int | None
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class Release:
    """Lines to be shown now, with the hole before them where there is one."""

    stream_id: str
    part: Arrived
    hole: Hole | None = None


@dataclass(slots=True)
class Followed:
    """One stream. Below `floor` nobody has looked what is stored."""

    run_id: str
    rank: int | None
    dense: bool
    floor: int = 0
    shown: Ranges = field(default_factory=list)
    held: list[Arrived] = field(default_factory=list)

    @property
    def reach(self) -> int:
        """The seq behind the last line that was shown."""
        return self.shown[-1][1] if self.shown else 0


class Following:
    """Every stream that a tail follows; the ones not heard of longest are forgotten first."""

    def __init__(self) -> None:
        self.streams: dict[str, Followed] = {}
        self.holding: dict[str, None] = {}  # streams with something held, in order of arrival
        self.forgotten = False

    def begin(self, entries: Sequence[StreamEntry]) -> None:
        """What is stored when the tail begins is not shown, and lies behind."""
        for entry in entries:
            if entry.ranges:
                one = self.streams.setdefault(entry.stream_id, _followed(entry))
                one.shown = union([*one.shown, *entry.ranges])
                one.floor = one.shown[0][0]

    def is_unsure(self, entry: StreamEntry) -> bool:
        """Whether only the store's older indexes tell which of these lines are new."""
        if not entry.ranges:
            return False
        one = self.streams.get(entry.stream_id)
        if one is None:
            return entry.ranges[0][0] > 0 or self.forgotten
        return entry.ranges[0][0] < one.floor

    def learn(self, entry: StreamEntry, older: Ranges) -> None:
        """What the store's older indexes have of a stream."""
        one = self.streams.setdefault(entry.stream_id, _followed(entry))
        one.floor = 0
        one.shown = union([*one.shown, *older])

    def arrive(self, entry: StreamEntry, index: str, now_ns: int) -> None:
        """An index with lines of a stream was committed. What is known already changes nothing."""
        if not entry.ranges:
            return
        one = self.streams.pop(entry.stream_id, None) or _followed(entry)
        self.streams[entry.stream_id] = one  # the one heard of last
        known = union([*one.shown, *((part.first, part.end) for part in one.held)])
        for first, end in difference(union(entry.ranges), known):
            if first < one.reach:
                cut = min(end, one.reach)
                one.held.append(Arrived(first, cut, index, now_ns, late=one.dense))
                first = cut
            if first < end:
                one.held.append(Arrived(first, end, index, now_ns))
        if one.held:
            one.held.sort(key=lambda part: part.first)
            self.holding[entry.stream_id] = None
        self._forget()

    def _forget(self) -> None:
        while len(self.streams) > limits.TAIL_STREAMS_MAX:
            oldest = next((name for name in self.streams if name not in self.holding), None)
            if oldest is None:
                return
            del self.streams[oldest]
            self.forgotten = True

    def choose(self, now_ns: int, rows: int) -> list[Release]:
        """What can be shown now, at most `rows` lines of it. Nothing changes before `commit`."""
        chosen: list[Release] = []
        for stream_id in self.holding:
            for release in self._releases(stream_id, now_ns):
                if rows <= 0:
                    return chosen
                part = release.part
                cut = min(part.end, part.first + rows)
                chosen.append(Release(stream_id, _cut(part, part.first, cut), release.hole))
                rows -= cut - part.first
        return chosen

    def _releases(self, stream_id: str, now_ns: int) -> Iterator[Release]:
        one = self.streams[stream_id]
        reach = one.reach
        for part in one.held:
            hole = None
            if part.first > reach and one.dense:
                if now_ns - part.at_ns < HOLD_NS:
                    return
                hole = Hole(stream_id, one.run_id, one.rank, reach, part.first)
            yield Release(stream_id, part, hole)
            reach = max(reach, part.end)

    def commit(self, chosen: Sequence[Release]) -> None:
        """These were shown."""
        by_stream: dict[str, Ranges] = {}
        for release in chosen:
            part = release.part
            by_stream.setdefault(release.stream_id, []).append((part.first, part.end))
        for stream_id, ranges in by_stream.items():
            one = self.streams[stream_id]
            one.shown = _bounded(union([*one.shown, *ranges]))
            one.held = [
                _cut(part, first, end)
                for part in one.held
                for first, end in difference([(part.first, part.end)], union(ranges))
            ]
            if not one.held:
                del self.holding[stream_id]


def older_ranges(entries: Sequence[StreamEntry]) -> Mapping[str, Ranges]:
    """Ranges of every stream in some indexes."""
    found: dict[str, Ranges] = {}
    for entry in entries:
        found.setdefault(entry.stream_id, []).extend(entry.ranges)
    return found


def _followed(entry: StreamEntry) -> Followed:
    stream = entry.stream
    return Followed(stream.run_id, stream.rank, stream.kind == DENSE)


def _cut(part: Arrived, first: int, end: int) -> Arrived:
    return Arrived(first, end, part.index, part.at_ns, part.late)


def _bounded(shown: Ranges) -> Ranges:
    """The oldest holes are closed when there are too many: memory is bounded, and they are old."""
    over = len(shown) - limits.TAIL_HOLES_MAX
    return [(shown[0][0], shown[over][1]), *shown[over + 1 :]] if over > 0 else shown
