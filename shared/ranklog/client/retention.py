"""Apply retention: hide what is below the floor, then remove objects of which every row is hidden.

A tombstone says first what goes; objects go no sooner than REMOVAL_GRACE_S later, at the next apply, the
index before its segment. What a pin names stays: a pinned question does not look at retention.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ranklog import limits
from ranklog.answer.render import render_time
from ranklog.client.catalog import LINES_AND_POINTS, Launch, Listing
from ranklog.client.pins import load_pin
from ranklog.client.reader import Reader
from ranklog.client.scope import Scope, load_scope
from ranklog.client.search import Search
from ranklog.compact.streams import all_hidden
from ranklog.delete.actions import Action, record_action
from ranklog.delete.merging import merge_tombstones
from ranklog.delete.retention import Policy, load_policy
from ranklog.delete.tombstones import put_tombstone
from ranklog.errors import Corrupt, NotFound, TooLarge
from ranklog.layout import keys
from ranklog.layout.bundle import object_key
from ranklog.layout.index import SegmentIndex
from ranklog.limits import HOUR_NS, SECOND_NS
from ranklog.model import query as q
from ranklog.model.answer import Report
from ranklog.model.frame import KIND_LINE
from ranklog.model.index import StreamEntry
from ranklog.model.tombstone import RETENTION, Deleted, Tombstone, Tombstones
from ranklog.plan.overlap import difference, union

# Streams whose time never runs back: below a row that is too old there is none that is not.
_MONOTONE = ("producer", "agent")


@dataclass(slots=True)
class Applied:
    """What an apply did, or would do. `floors`: by run; `removed`: keys of indexes and segments;
    `failed`: what could not be read and stays."""

    floors: dict[str, int] = field(default_factory=dict)
    rows: list[Deleted] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    pinned: int = 0
    failed: list[dict[str, str]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return {
            "floors": {run: render_time(floor) for run, floor in sorted(self.floors.items())},
            "lines": sum(item.lines for item in self.rows),
            "objects_removed": len(self.removed),
            "pinned": self.pinned,
            "failed": self.failed,
        }


def apply_retention(reader: Reader, *, who: str, why: str = "", dry_run: bool = False) -> Applied:
    """Hide what is older than the tenant keeps; remove objects whose rows were hidden a while ago, by
    retention or by deletion."""
    result, now_ns = Applied(), reader.now_ns()
    policy = load_policy(reader.store, reader.tenant)
    for run in reader.catalog.run_names():
        floor_ns = policy.floor_ns(run, now_ns)
        if floor_ns:
            result.floors[run] = floor_ns
            for launch in reader.catalog.launches(run):
                result.rows += _expired(reader, launch, floor_ns, result)
    removable, markers = _removable(reader, policy, now_ns, result)
    result.removed = [key for index in removable for key in _objects_of(index)]
    if not dry_run and (result.rows or removable):
        _do(reader, result, removable, Action("retention.apply", now_ns, who, why))
        for key in markers:
            reader.store.delete(key)
    if not dry_run:
        merge_tombstones(reader.store, reader.tenant, now_ns)
    return result


def _do(reader: Reader, result: Applied, removable: Sequence[SegmentIndex], action: Action) -> None:
    """The log, the tombstone, the indexes, their segments: in this order."""
    store, tenant = reader.store, reader.tenant
    told = {**result.to_json(), "removed": result.removed[: limits.COMPLETENESS_LIST_MAX]}
    record_action(
        store, tenant, Action(action.action, action.when_ns, action.who, action.why, told)
    )
    frames = _frames_of(removable)
    tombstone = Tombstone(
        RETENTION, action.when_ns, action.who, action.why, "", (), tuple(result.rows), frames
    )
    put_tombstone(store, tenant, tombstone)
    for index in removable:
        store.delete(index.key)
    for index in removable:
        if index.head.segment is not None:
            store.delete(index.head.segment.key)


def _frames_of(indexes: Iterable[SegmentIndex]) -> tuple[tuple[str, int, int], ...]:
    """Numbers of frames whose headers only these indexes keep, as ranges by agent."""
    numbers: dict[str, list[tuple[int, int]]] = {}
    for index in indexes:
        for frame in index.head.frames:
            numbers.setdefault(frame.agent, []).append((frame.number, frame.number + 1))
    return tuple(
        (agent, first, end)
        for agent, found in sorted(numbers.items())
        for first, end in union(found)
    )


# --- what is too old ------------------------------------------------------------------------------
def _expired(reader: Reader, launch: Launch, floor_ns: int, result: Applied) -> Iterator[Deleted]:
    """Rows of a launch below the floor that nothing hides yet."""
    listing = reader.catalog.list_launches([launch], None, floor_ns, LINES_AND_POINTS)
    scope = load_scope(reader, [launch], listing)
    result.failed += scope.failed
    whole: dict[tuple[str, int | None], tuple[StreamEntry, list[tuple[int, int]]]] = {}
    astride: dict[str, SegmentIndex] = {}
    for index in (*scope.indexes.values(), *scope.points.values()):
        for entry in index.head.streams:
            if not scope.holds(entry) or entry.min_ts is None or entry.max_ts is None:
                continue
            if entry.max_ts < floor_ns:
                hour = entry.min_ts // HOUR_NS
                key = (entry.stream_id, hour if hour == entry.max_ts // HOUR_NS else None)
                whole.setdefault(key, (entry, []))[1].extend(entry.ranges)
            elif entry.min_ts < floor_ns:
                astride[index.key] = index
    found = {key: (entry, union(ranges)) for key, (entry, ranges) in whole.items()}
    wanted = {entry.stream_id for entry in scope.entries()}
    for stream_id, hour, ranges in _rows_astride(reader, launch, astride, floor_ns, result):
        if stream_id not in wanted:
            continue  # another launch's, in the same segment
        entry, known = found.get((stream_id, hour), (_entry_of(scope, stream_id), []))
        found[stream_id, hour] = (entry, union([*known, *ranges]))
    yield from _new_rows(found, scope.tombstones)


def _entry_of(scope: Scope, stream_id: str) -> StreamEntry:
    return next(entry for entry in scope.entries() if entry.stream_id == stream_id)


def _rows_astride(
    reader: Reader,
    launch: Launch,
    astride: Mapping[str, SegmentIndex],
    floor_ns: int,
    result: Applied,
) -> Iterator[tuple[str, int, list[tuple[int, int]]]]:
    """Rows below the floor in late segments that have others above it: these are read."""
    if not astride:
        return
    from ranklog.client.row_ranges import find_ranges, find_records

    lines = sorted(key for key, index in astride.items() if index.head.kind == KIND_LINE)
    if lines:
        scope = load_scope(reader, [launch], Listing(lines, None, floor_ns))
        yield from find_ranges(Search(reader, q.Query(q.Everything()), scope, Report()))
    for key, index in sorted(astride.items()):
        if index.head.kind != KIND_LINE:
            try:
                yield from find_records(reader.store, index, floor_ns)
            except (Corrupt, NotFound) as error:
                result.failed.append({"segment": key, "reason": error.message})


def _new_rows(
    found: dict[tuple[str, int | None], tuple[StreamEntry, list[tuple[int, int]]]],
    hidden: Tombstones,
) -> Iterator[Deleted]:
    """What no tombstone has yet; and, where time never runs back, the holes below: what is missing there
    is too old as well."""
    ends: dict[str, tuple[StreamEntry, list[tuple[int, int]]]] = {}
    for (stream_id, hour), (entry, ranges) in found.items():
        ends.setdefault(stream_id, (entry, []))[1].extend(ranges)
        new = difference(ranges, hidden.hidden(entry))
        if new:
            yield _deleted(entry, hour, new, sum(end - first for first, end in new))
    for entry, ranges in ends.values():
        if entry.stream.certified in _MONOTONE:
            known = union([*ranges, *hidden.hidden(entry)])
            holes = difference([(0, max(end for _, end in ranges))], known)
            if holes:
                yield _deleted(entry, None, holes, 0)


def _deleted(
    entry: StreamEntry, hour: int | None, ranges: Sequence[tuple[int, int]], lines: int
) -> Deleted:
    stream = entry.stream
    names = (entry.stream_id, stream.run, stream.launch, stream.attempt, stream.rank)
    if len(ranges) > limits.TOMBSTONE_RANGES_MAX:
        raise TooLarge(f"{stream.run_id} has {len(ranges):,} stretches of old lines in one stream")
    return Deleted(*names, hour, lines, tuple(ranges), RETENTION)


# --- objects --------------------------------------------------------------------------------------
def _removable(
    reader: Reader, policy: Policy, now_ns: int, result: Applied
) -> tuple[list[SegmentIndex], list[str]]:
    """Indexes of which every row was hidden long enough ago, that no pin names and no bundle holds; and
    markers of hours that nothing is left in of their launch."""
    hidden = reader.tombstones.before(now_ns - limits.REMOVAL_GRACE_S * SECOND_NS)
    if not hidden:
        return [], []
    listed = set(reader.catalog.list_time(None, None, LINES_AND_POINTS).keys)
    kept = _pinned(reader)
    found, stays = [], []
    loaded = reader.indexes.load(listed)
    goes_on = _shown(loaded.indexes, hidden)
    for index in loaded.indexes:
        head = index.head
        is_over = _is_over(index, hidden, policy, now_ns) and not _tells(index, goes_on, hidden)
        # what a bundle names needs its segment, though the copy beside the bundle is still there
        if index.key not in listed or index.key in loaded.copied or not is_over:
            stays.append(index)
        elif index.key in kept or (head.segment is not None and head.segment.key in kept):
            result.pinned += 1
            stays.append(index)
        else:
            found.append(index)
    left = {place for index in stays for place in _places(index)}
    gone = {place for index in found for place in _places(index)} - left
    if loaded.failed:  # what can't be read may be of any launch
        gone = set()
    # what a pin names is found by the marker, though a merge stands for it that goes
    held = {_hour_of(key) for key in listed & kept}
    gone = {place for place in gone if place[2] not in held}
    over = sorted(place for place in gone if _is_closed(place, hidden, policy, now_ns))
    return found, [keys.hour_marker_key(reader.tenant, *place) for place in over]


def _is_closed(
    place: tuple[str, str, int], hidden: Tombstones, policy: Policy, now_ns: int
) -> bool:
    """Whether no line that is to be shown can come into the hour any more. Else its marker stays: who
    commits there now has found it, and does not put it again."""
    run, launch, hour = place
    if hidden.hides_launch(run, launch):
        return True
    end_ns = (hour + 1) * HOUR_NS + limits.RETENTION_NOTES_NS  # batches are tried again for days
    return end_ns <= policy.floor_ns(run, now_ns)


def _is_over(index: SegmentIndex, hidden: Tombstones, policy: Policy, now_ns: int) -> bool:
    """Whether nobody needs it. What says more than its rows (a merge, which keeps what it replaced replaced;
    notes of streams) is kept for a while after the floor has passed it by."""
    head = index.head
    if not all_hidden(head, hidden.hidden):
        return False
    if head.segment is not None and not head.replaces:
        return True
    end_ns = keys.parse_index_key(index.key).max_ts + limits.RETENTION_NOTES_NS
    runs = {entry.stream.run for entry in head.streams}
    return bool(runs) and all(end_ns < policy.floor_ns(run, now_ns) for run in runs)


def _shown(indexes: Iterable[SegmentIndex], hidden: Tombstones) -> set[str]:
    """Streams of which something is left to be shown."""
    entries = (entry for index in indexes for entry in index.head.streams)
    return {entry.stream_id for entry in entries if difference(entry.ranges, hidden.hidden(entry))}


def _tells(index: SegmentIndex, goes_on: set[str], hidden: Tombstones) -> bool:
    """Whether it says of a stream that goes on what no tombstone says: its end, what was dropped, the lines
    of an hour. Then it waits for compaction, which keeps that and leaves the rows out."""
    return index.head.segment is not None and any(
        entry.stream_id in goes_on
        and (
            entry.end is not None
            or bool(entry.drops)
            or any(difference(fence.ranges, hidden.hidden(entry)) for fence in entry.fences)
        )
        for entry in index.head.streams
    )


def _places(index: SegmentIndex) -> set[tuple[str, str, int]]:
    """(run, launch, hour) that it has something of; none of late arrivals."""
    hour = _hour_of(index.key)
    if hour is None:
        return set()
    return {(entry.stream.run, entry.stream.launch, hour) for entry in index.head.streams}


def _hour_of(key: str) -> int | None:
    """The hour in whose folder an index lies."""
    return keys.hour_of_index_prefix(object_key(key).rpartition("/")[0] + "/")


def _objects_of(index: SegmentIndex) -> list[str]:
    segment = index.head.segment
    return [index.key, *([] if segment is None else [segment.key])]


def _pinned(reader: Reader) -> set[str]:
    """Keys of indexes and segments that pins name. Raises Corrupt for a pin that can't be read."""
    prefix = keys.pins_prefix(reader.tenant)
    found: set[str] = set()
    for item in reader.store.list(prefix):
        pin = load_pin(
            reader, keys.decode_name(item.key.removeprefix(prefix)).removesuffix(".json")
        )
        found.update(pin.indexes, (segment for segment, *_ in pin.segments))
    return found
