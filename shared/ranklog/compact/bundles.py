"""Level 0: copies of a folder's indexes in few objects; segments stay where they are.

A bundle holds the indexes of one closed minute. Past COMPACT_OBJECTS_MAX objects a folder's bundles and
single indexes are put together, smallest first, into bundles of at most COMPACT_BUNDLE_BYTES_MAX. So a
planner meets at most COMPACT_OBJECTS_MAX objects per folder and kind, one more for each 8 MiB of
indexes, and those of the last two minutes. Nothing is replaced: an index keeps its key.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence

from ranklog.compact.contents import Contents, Held
from ranklog.ingest.commit import put_index
from ranklog.layout.bundle import BUNDLED, encode_bundle, object_key
from ranklog.limits import (
    COMPACT_BUNDLE_BYTES_MAX,
    COMPACT_MINUTE_LAG_S,
    COMPACT_OBJECTS_MAX,
    SECOND_NS,
)
from ranklog.store.protocol import Store

_MINUTE_NS = 60 * SECOND_NS


def bundles(contents: Contents, now_ns: int) -> list[list[Held]]:
    """Groups of objects that become one each; in order of keys."""
    waiting = _not_held_twice(contents.objects)
    closed = [
        held
        for held in waiting
        if held.modified_ns is not None
        and held.modified_ns // _MINUTE_NS
        < (now_ns - COMPACT_MINUTE_LAG_S * SECOND_NS) // _MINUTE_NS
    ]
    minutes: dict[int, list[Held]] = defaultdict(list)
    for held in closed:
        if not held.is_bundle and held.modified_ns is not None:
            minutes[held.modified_ns // _MINUTE_NS].append(held)
    groups = [group for group in minutes.values() if len(group) > 1]
    left = len(closed) - sum(len(group) - 1 for group in groups)
    if left <= COMPACT_OBJECTS_MAX:
        return groups
    return [group for group in _packed(closed) if len(group) > 1]


def _not_held_twice(objects: Sequence[Held]) -> list[Held]:
    """Objects with a live index that no other bundle holds: the others only wait for their deletion.
    Bundles of merges are large enough, and stay alone."""
    replaced = {key for held in objects for one in held.indexes for key in one.head.replaces}
    homes: dict[str, set[str]] = defaultdict(set)
    for held in objects:
        for index in held.indexes:
            homes[index.key].add(held.key)
    rank = {held.key: (len(held.indexes), held.key) for held in objects}
    return [
        held
        for held in objects
        if object_key(held.indexes[0].key) == held.indexes[0].key
        and any(
            i.key not in replaced and rank[held.key] == max(rank[h] for h in homes[i.key])
            for i in held.indexes
        )
    ]


def _packed(closed: Sequence[Held]) -> list[list[Held]]:
    groups: list[list[Held]] = []
    size = 0
    for held in sorted(closed, key=lambda one: (one.length, one.key)):
        size += held.length
        if not groups or size > COMPACT_BUNDLE_BYTES_MAX:
            groups.append([])
            size = held.length
        groups[-1].append(held)
    return groups


def bundle(store: Store, contents: Contents, group: Sequence[Held]) -> str | None:
    """Commit one bundle of these objects' indexes; its key, None where somebody else did."""
    indexes = {index.key: index for held in group for index in held.indexes}
    members = [(key, bytes(index.data)) for key, index in sorted(indexes.items())]
    text = "\n".join(key for key, _ in members)
    digest = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
    low, high = min(h.name.min_ts for h in group), max(h.name.max_ts for h in group)
    place = contents.folder.place(BUNDLED, digest, str(len(members)))
    key = place.index_key(contents.kind, (low, high))
    return key if put_index(store, key, encode_bundle(members)) else None
