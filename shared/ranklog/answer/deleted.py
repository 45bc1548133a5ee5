"""What was deleted of the runs in scope, for completeness: gone is neither shown nor missing. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from ranklog.model.index import StreamEntry
from ranklog.model.stream import Stream
from ranklog.model.tombstone import RETENTION, SEQ_END, Deleted, Tombstones
from ranklog.plan.overlap import difference, union

DELETED = "deleted"


class Hours(Protocol):
    """What was read; `whole`: every hour."""

    @property
    def whole(self) -> bool: ...
    def has(self, hour: int) -> bool: ...
    def within(self, hours: Set[int]) -> bool: ...


@dataclass(frozen=True, slots=True)
class Gone:
    """The tombstones that are to be thought of; `run_ids` None: those of all runs."""

    tombstones: Tombstones = field(default_factory=Tombstones)
    run_ids: frozenset[str] | None = None

    def hides(self, stream: Stream) -> bool:
        """Whether every line of the stream is hidden, those that come later too."""
        return self.tombstones.hides_launch(stream.run, stream.launch)

    def ranges(self, stream_id: str) -> tuple[tuple[int, int], ...]:
        """Seq ranges of a stream that were deleted."""
        return self.tombstones.streams.get(stream_id, ())

    def by_stream(self) -> dict[str, list[Deleted]]:
        """Deletions by stream."""
        found: dict[str, list[Deleted]] = {}
        for item in self.tombstones.of_runs(self.run_ids):
            found.setdefault(item.stream_id, []).append(item)
        return found

    def rows(self, window: Hours) -> list[Deleted]:
        """Deletions of the hours that were read; those of which nobody knows the hour as well."""
        return [
            item
            for item in self.tombstones.of_runs(self.run_ids)
            if item.hour is None or window.has(item.hour)
        ]

    def expired(self, window: Hours) -> list[Deleted]:
        """What retention removed of the hours that were read, with all that the indexes knew of it; it
        lets nothing come after. Of lines that somebody deleted the notes are left: where there are none
        either, more may be missing than was deleted. Lines of an hour that nobody knows were in one that
        was read where every one was."""
        return [
            item
            for item in self.tombstones.of_runs(self.run_ids)
            if item.kind == RETENTION
            and (window.whole if item.hour is None else window.has(item.hour))
        ]

    def ranks(self, window: Hours) -> dict[tuple[str, str, int], set[int]]:
        """Ranks, by attempt, of which retention removed lines of every hour that was read: they are not absent.
        Of an hour without such lines, or of all that is to come, nobody knows what is on its way."""
        hours: dict[tuple[str, str, int, int], set[int]] = {}
        for item in self.expired(window):
            if item.rank is not None and item.hour is not None:
                place = (item.run, item.launch, item.attempt, item.rank)
                hours.setdefault(place, set()).add(item.hour)
        found: dict[tuple[str, str, int], set[int]] = {}
        for (run, launch, attempt, rank), removed in hours.items():
            if window.within(removed):
                found.setdefault((run, launch, attempt), set()).add(rank)
        return found


# Where nothing was deleted.
NOTHING = Gone()


def deleted_members(
    rows: Iterable[Deleted], later: Mapping[str, tuple[int | None, int]]
) -> list[dict[str, Any]]:
    """The member `deleted` of completeness: by stream and reason. `later`: (rank, lines) by stream of
    what came for a launch after it was deleted."""
    counts: dict[tuple[str, str], tuple[int | None, int]] = {}
    for item in rows:
        key = (item.stream_id, RETENTION if item.kind == RETENTION else DELETED)
        counts[key] = (item.rank, counts.get(key, (None, 0))[1] + item.lines)
    for stream_id, (rank, lines) in later.items():
        key = (stream_id, DELETED)
        counts[key] = (rank, counts.get(key, (None, 0))[1] + lines)
    return [
        {"stream": stream_id, "rank": rank, "lines": lines, "reason": reason}
        for (stream_id, reason), (rank, lines) in sorted(
            counts.items(), key=lambda item: (-1 if item[1][0] is None else item[1][0], item[0])
        )
        if lines
    ]


def came_later(seen: Sequence[tuple[int, int]], known: Sequence[tuple[int, int]]) -> int:
    """Lines of a launch that is hidden whole which its tombstone did not know of."""
    return sum(end - first for first, end in difference(union(list(seen)), union(list(known))))


def visible(entry: StreamEntry, tombstones: Tombstones) -> StreamEntry:
    """The entry without its deleted rows; of its bytes (and points) the share of the rows that are left."""
    hidden = tombstones.hidden(entry)
    if not hidden or not entry.ranges:
        return entry
    left = tuple(difference(entry.ranges, hidden))
    if left == entry.ranges:
        return entry
    rows = sum(end - first for first, end in entry.ranges)
    share = sum(end - first for first, end in left)
    lines, size = (count * share // max(1, rows) for count in (entry.lines, entry.text_bytes))
    return replace(entry, ranges=left, lines=lines, text_bytes=size)


def finite_end(ranges: Sequence[tuple[int, int]]) -> int:
    """The end of what was deleted, 0 where there is nothing or no end."""
    end = ranges[-1][1] if ranges else 0
    return 0 if end == SEQ_END else end
