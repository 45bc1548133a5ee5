"""Tombstones in a store: written once, read with every question, folded by stream.

A reader LISTs the names (one request) and GETs each object once. One that can't be read is an error of
the question and not a shorter answer: lines that were deleted would be shown.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from ranklog.delete.codec import decode_tombstone, encode_tombstone
from ranklog.errors import AlreadyExists, NotFound, Unavailable
from ranklog.layout import keys
from ranklog.model.index import StreamEntry
from ranklog.model.tombstone import RETENTION, Deleted, Tombstone, Tombstones
from ranklog.plan.overlap import intersection, union
from ranklog.store.protocol import Store

# Merging takes some seconds, once in days.
_TRIES = 8


def load(store: Store, tenant: str) -> Tombstones:
    """All that was deleted. Raises Corrupt, NewerVersion and what the store raises."""
    return TombstoneCache(store, tenant).load()


def put_tombstone(store: Store, tenant: str, tombstone: Tombstone) -> str:
    """The deletion, from here on; its key. The same again is there already."""
    data = encode_tombstone(tombstone)
    key = keys.tombstone_key(tenant, tombstone.when_ns, keys.hash_segment(data))
    with contextlib.suppress(AlreadyExists):
        store.put(key, data, if_absent=True)
    return key


class TombstoneCache:
    """Tombstones of one tenant; an object never changes, so it is read once. Safe for many threads."""

    def __init__(self, store: Store, tenant: str) -> None:
        self._store = store
        self._prefix = keys.tombstones_prefix(tenant)
        self._lock = threading.Lock()
        self._known: dict[str, Tombstone] = {}
        self._folded = Tombstones()

    def load(self) -> Tombstones:
        """As they are now."""
        for _ in range(_TRIES):
            names = tuple(sorted(item.key for item in self._store.list(self._prefix)))
            if names == self._folded.keys:
                return self._folded
            # merged since it was listed: what it said is in another
            with contextlib.suppress(NotFound):
                return self._read(names)
        raise Unavailable("tombstones change as they are read", hint="try again")

    def _read(self, names: tuple[str, ...]) -> Tombstones:
        with self._lock:
            for key in names:
                if key not in self._known:
                    self._known[key] = decode_tombstone(self._store.get(key), key)
            if names != self._folded.keys:
                self._known = {key: self._known[key] for key in names}
                self._folded = fold(self._known)
            return self._folded

    def before(self, when_ns: int) -> Tombstones:
        """As they were at a time."""
        return self._part(lambda key, _: _when(key) < when_ns)

    def for_pins(self) -> Tombstones:
        """Without retention, from which a pin keeps what it names."""
        return self._part(lambda _, tombstone: tombstone.kind != RETENTION)

    def _part(self, wanted: Callable[[str, Tombstone], bool]) -> Tombstones:
        every = self.load().keys
        with self._lock:
            known = {key: self._known[key] for key in every if key in self._known}
        if len(known) < len(every):  # another thread saw them merged
            return self._part(wanted)
        return fold({key: one for key, one in known.items() if wanted(key, one)})


def _when(key: str) -> int:
    """The time in a tombstone's name."""
    return int(key.rpartition("/")[2].partition(".")[0])


def fold(tombstones: Mapping[str, Tombstone]) -> Tombstones:
    """By stream, by key; a row that was deleted twice counts once."""
    ranges: dict[str, list[tuple[int, int]]] = {}
    rows: list[Deleted] = []
    for key in sorted(tombstones):
        for item in tombstones[key].rows:
            known = ranges.setdefault(item.stream_id, [])
            twice = _size(intersection(union(item.ranges), union(known)))
            known += item.ranges
            rows.append(item if not twice else _less(item, twice))
    launches = frozenset(names for item in tombstones.values() for names in item.launches)
    folded = {stream: tuple(union(found)) for stream, found in ranges.items()}
    frames = tuple(sorted({part for item in tombstones.values() for part in item.frames}))
    return Tombstones(tuple(sorted(tombstones)), folded, launches, tuple(rows), frames)


def _less(item: Deleted, twice: int) -> Deleted:
    return replace(item, lines=max(0, item.lines - twice))


def _size(ranges: Iterable[tuple[int, int]]) -> int:
    return sum(end - first for first, end in ranges)


def hidden_rows(
    tables: Mapping[int, Iterable[StreamEntry]], hidden: Tombstones
) -> dict[int, list[tuple[int, int, int]]]:
    """Segment number -> (stream position, first seq, end seq) that it has and nobody may see."""
    found: dict[int, list[tuple[int, int, int]]] = {}
    if not hidden:
        return found
    for number, entries in tables.items():
        for position, entry in enumerate(entries):
            gone = intersection(entry.ranges, hidden.hidden(entry))
            if gone:
                found.setdefault(number, []).extend((position, a, b) for a, b in gone)
    return found
