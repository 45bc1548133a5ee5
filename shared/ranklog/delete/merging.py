"""Few tombstones from many: retention leaves one an hour, and every question lists them all.

The merged one is put before those that are in it go, so that at each moment all that was deleted is named, by
some of it twice. It bears the time of the newest of them. A reader that listed one which went lists again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from ranklog.delete.codec import decode_tombstone
from ranklog.delete.tombstones import put_tombstone
from ranklog.errors import NotFound
from ranklog.layout import keys
from ranklog.limits import REMOVAL_GRACE_S, SECOND_NS, TOMBSTONE_BYTES_MAX, TOMBSTONES_MAX
from ranklog.model.tombstone import RETENTION, Deleted, Tombstone
from ranklog.plan.overlap import Ranges, difference, union
from ranklog.store.protocol import ObjectInfo, Store

WHO = "ranklog"


def merge_tombstones(store: Store, tenant: str, now_ns: int) -> int:
    """Where there are more than TOMBSTONES_MAX small ones that are past the grace, make one of each kind of
    them; returns how many went. Two that do this at once leave both of theirs, which say the same."""
    latest_ns = now_ns - REMOVAL_GRACE_S * SECOND_NS
    listed = list(store.list(keys.tombstones_prefix(tenant)))
    small = [one for one in listed if _when(one.key) < latest_ns and _is_small(one)]
    if len(small) <= TOMBSTONES_MAX:
        return 0
    by_kind: dict[bool, list[tuple[str, Tombstone]]] = {}
    for info in small:
        try:
            found = decode_tombstone(store.get(info.key), info.key)
        except NotFound:  # somebody else merges
            return 0
        by_kind.setdefault(found.kind == RETENTION, []).append((info.key, found))
    gone = 0
    for of_kind in by_kind.values():
        for group in _groups(of_kind, {info.key: info.length for info in small}):
            made = put_tombstone(store, tenant, merged([one for _, one in group]))
            for key, _ in group:
                if key != made:
                    with suppress(NotFound):
                        store.delete(key)
                    gone += 1
    return gone


def merged(tombstones: list[Tombstone]) -> Tombstone:
    """What all of them delete; a row that several name counts once."""
    rows: dict[tuple[object, ...], tuple[Deleted, Ranges, int]] = {}
    known: dict[str, Ranges] = {}
    for tombstone in tombstones:
        for item in tombstone.rows:
            seen = known.setdefault(item.stream_id, [])
            new = difference(union(item.ranges), seen)
            twice = sum(end - first for first, end in item.ranges) - sum(b - a for a, b in new)
            known[item.stream_id] = union([*seen, *new])
            place = (item.stream_id, item.run, item.launch, item.attempt, item.rank, item.hour)
            _, ranges, lines = rows.get(place, (item, [], 0))
            more = max(0, item.lines - twice)
            rows[place] = (item, union([*ranges, *new]), lines + more)
    newest = max(tombstones, key=lambda one: one.when_ns)
    kind = newest.kind
    return Tombstone(
        kind,
        newest.when_ns,
        WHO,
        f"{len(tombstones)} tombstones in one",
        "",
        tuple(sorted({names for one in tombstones for names in one.launches})),
        tuple(
            Deleted(d.stream_id, d.run, d.launch, d.attempt, d.rank, d.hour, lines, tuple(r), kind)
            for d, r, lines in rows.values()
            if r
        ),
        tuple(_frames(tombstones)),
    )


def _frames(tombstones: Iterable[Tombstone]) -> Iterator[tuple[str, int, int]]:
    numbers: dict[str, list[tuple[int, int]]] = {}
    for tombstone in tombstones:
        for agent, first, end in tombstone.frames:
            numbers.setdefault(agent, []).append((first, end))
    for agent, ranges in sorted(numbers.items()):
        yield from ((agent, first, end) for first, end in union(ranges))


def _groups(
    found: list[tuple[str, Tombstone]], lengths: dict[str, int]
) -> Iterator[list[tuple[str, Tombstone]]]:
    """In order of time, of at most TOMBSTONE_BYTES_MAX; what would be alone stays."""
    group: list[tuple[str, Tombstone]] = []
    size = 0
    for key, one in found:
        if group and size + lengths[key] > TOMBSTONE_BYTES_MAX:
            if len(group) > 1:
                yield group
            group, size = [], 0
        group.append((key, one))
        size += lengths[key]
    if len(group) > 1:
        yield group


def _is_small(info: ObjectInfo) -> bool:
    return info.length < TOMBSTONE_BYTES_MAX // 2


def _when(key: str) -> int:
    return int(key.rpartition("/")[2].partition(".")[0])
