"""Load indexes: many GETs at once, kept in memory by key, damage reported and not raised.

An index never changes under its key, so a cached one is as good as a read one.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from ranklog import limits
from ranklog.client.garbage import collector_waits
from ranklog.client.index_files import IndexFiles
from ranklog.errors import Corrupt, NewerVersion, NotFound, RanklogError
from ranklog.layout.bundle import BUNDLED, COMPACTED, object_key, open_indexes
from ranklog.layout.index import SegmentIndex
from ranklog.store.protocol import Store


@dataclass(slots=True)
class Loaded:
    """Indexes in the order of their keys, and the keys that could not be read with the reason.
    `opened`: keys that could be read, of bundles and of what another index replaces as well;
    `copied`: of these indexes those that lie in a bundle of copies."""

    indexes: list[SegmentIndex] = field(default_factory=list)
    failed: list[dict[str, str]] = field(default_factory=list)
    bytes_read: int = 0
    opened: set[str] = field(default_factory=set)
    copied: set[str] = field(default_factory=set)


# An index in use takes about this many times its bytes: sections are compressed, tables are objects.
_EXPANSION = 10
_GETS_AT_ONCE = 8


class IndexCache:
    """Indexes of one store, least recently used dropped first. Safe to use from many threads."""

    def __init__(
        self,
        store: Store,
        bytes_max: int = limits.INDEX_CACHE_BYTES_MAX,
        files: IndexFiles | None = None,
    ) -> None:
        self._store = store
        self._files = files
        self._bytes_max = bytes_max
        self._bytes = 0
        self._kept: OrderedDict[str, tuple[SegmentIndex, ...]] = OrderedDict()
        self._lock = threading.Lock()

    def load(self, keys: Iterable[str]) -> Loaded:
        """Every index in the objects `keys`, once, less those that another of them replaces."""
        loaded = Loaded()
        wanted = sorted(set(keys))
        # What compaction made answers for most of the others, which then need not be read.
        found: dict[str, tuple[SegmentIndex, ...] | str] = {}
        for source in (COMPACTED, BUNDLED, None):
            known = _answered(found)
            of_source = (key for key in wanted if source is None or f".{source}." in key)
            found |= self._read([k for k in of_source if k not in found and k not in known], loaded)
        loaded.opened = known.intersection(wanted)
        by_key: dict[str, SegmentIndex] = {}
        for key, item in sorted(found.items()):
            if isinstance(item, str):
                loaded.failed.append({"segment": key, "reason": item})
                continue
            loaded.opened.add(key)
            for index in item:
                by_key.setdefault(index.key, index)
            loaded.copied.update(index.key for index in item if f".{BUNDLED}." in key)
        loaded.indexes = [by_key[key] for key in sorted(by_key)]
        # compaction took the one that lay alone, and a bundle has it
        loaded.opened.update(by_key.keys() & wanted)
        loaded.failed = [item for item in loaded.failed if item["segment"] not in by_key]
        _drop_replaced(loaded)
        return loaded

    def _read(self, wanted: list[str], loaded: Loaded) -> dict[str, tuple[SegmentIndex, ...] | str]:
        """The indexes of each object, or why it can't be read."""
        # Held from here on: what is fetched below may drop it from the cache.
        found: dict[str, tuple[SegmentIndex, ...] | str] = {
            key: kept for key in wanted if (kept := self._cached(key)) is not None
        }
        missing = [key for key in wanted if key not in found]
        width = min(limits.INDEX_GETS_IN_FLIGHT_MAX, len(missing))
        if width <= 1:
            fetched = [self._opened(key, self._get(key)) for key in missing]
        else:
            # Threads wait for bytes; unpacking is Python, of which only one thread runs at a time.
            with collector_waits():
                fetched = list(map(self._opened, missing, self._get_all(missing, width)))
        found |= zip(missing, fetched, strict=True)
        loaded.bytes_read += sum(_size(item) for item in fetched if not isinstance(item, str))
        return found

    def _cached(self, key: str) -> tuple[SegmentIndex, ...] | None:
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None:
                self._kept.move_to_end(key)
            return kept

    def _get_all(self, wanted: list[str], width: int) -> Iterator[bytes | str]:
        """The bytes of each, in their order, as soon as they are there. A thread takes a few at a time:
        where files are near, handing over is dearer than reading."""
        size = max(1, min(_GETS_AT_ONCE, len(wanted) // width))
        shares = [wanted[at : at + size] for at in range(0, len(wanted), size)]
        with ThreadPoolExecutor(width, thread_name_prefix="ranklog-index") as pool:
            for share in pool.map(lambda keys: [self._get(key) for key in keys], shares):
                yield from share

    def _get(self, key: str) -> bytes | str:
        """An index's bytes, or the reason why there are none."""
        try:
            name = object_key(key)
            kept = None if self._files is None else self._files.get(name)
            if kept is not None:
                return kept
            data = self._store.get(name)
            if self._files is not None:
                for index in open_indexes(data, name):
                    index.check()  # nothing damaged is kept
                self._files.put(name, data)
            return data
        except NotFound:
            # Deletion leaves what a running query may have listed: this one went another way, and
            # its lines may be nowhere else.
            return f"index is gone: it was listed and is not there: {key}"
        except (Corrupt, NewerVersion) as error:
            return error.message
        except RanklogError as error:
            return f"index not read: {error.message}"

    def _opened(self, key: str, data: bytes | str) -> tuple[SegmentIndex, ...] | str:
        """The indexes of an object, kept from now on; or the reason why they can't be read."""
        if isinstance(data, str):
            return data
        try:
            found = open_indexes(data, object_key(key))
            if key != object_key(key):
                found = tuple(index for index in found if index.key == key)
            for index in found:
                # All of it, now: damage that showed in the middle of planning would fail the query.
                index.check()
                _ = index.head, index.templates, index.longest_mixed
        except (Corrupt, NewerVersion) as error:
            return error.message
        with self._lock:
            if key in self._kept:
                return self._kept[key]
            self._kept[key] = found
            self._bytes += _size(found) * _EXPANSION
            while self._bytes > self._bytes_max and len(self._kept) > 1:
                _, old = self._kept.popitem(last=False)
                self._bytes -= _size(old) * _EXPANSION
        return found


def _answered(found: Mapping[str, tuple[SegmentIndex, ...] | str]) -> set[str]:
    """Keys of indexes that these objects hold or replace."""
    indexes = [index for item in found.values() if not isinstance(item, str) for index in item]
    return {index.key for index in indexes}.union(*(index.head.replaces for index in indexes))


def _size(indexes: tuple[SegmentIndex, ...]) -> int:
    return sum(len(index.data) for index in indexes)


def _drop_replaced(loaded: Loaded) -> None:
    """A reader that sees both a compacted index and what it replaces ignores the replaced."""
    replaced = {key for index in loaded.indexes for key in index.head.replaces}
    if replaced:
        loaded.indexes = [index for index in loaded.indexes if index.key not in replaced]
        loaded.failed = [item for item in loaded.failed if item["segment"] not in replaced]
