"""Load indexes: many GETs at once, kept in memory by key, damage reported and not raised.

An index never changes under its key, so a cached one is as good as a read one.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from ranklog import limits
from ranklog.client.index_files import IndexFiles
from ranklog.errors import Corrupt, NewerVersion, NotFound, RanklogError
from ranklog.layout.index import SegmentIndex
from ranklog.store.protocol import Store


@dataclass(slots=True)
class Loaded:
    """Indexes in the order of their keys, and the keys that could not be read with the reason."""

    indexes: list[SegmentIndex] = field(default_factory=list)
    failed: list[dict[str, str]] = field(default_factory=list)
    bytes_read: int = 0


# An index in use takes about this many times its bytes: sections are compressed, tables are objects.
_EXPANSION = 10


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
        self._kept: OrderedDict[str, SegmentIndex] = OrderedDict()
        self._lock = threading.Lock()

    def load(self, keys: Iterable[str]) -> Loaded:
        """Every index of `keys`, less those that another of them replaces."""
        loaded = Loaded()
        wanted = sorted(set(keys))
        # Held from here on: what is fetched below may drop it from the cache.
        found: dict[str, SegmentIndex | str] = {
            key: index for key in wanted if (index := self._cached(key)) is not None
        }
        missing = [key for key in wanted if key not in found]
        width = min(limits.INDEX_GETS_IN_FLIGHT_MAX, len(missing))
        if width <= 1:
            fetched = [self._opened(key, self._get(key)) for key in missing]
        else:
            # Threads wait for bytes; unpacking is Python, of which only one thread runs at a time.
            with ThreadPoolExecutor(width, thread_name_prefix="ranklog-index") as pool:
                fetched = list(map(self._opened, missing, pool.map(self._get, missing)))
        found |= zip(missing, fetched, strict=True)
        for key in wanted:
            item = found[key]
            if isinstance(item, SegmentIndex):
                loaded.indexes.append(item)
            else:
                loaded.failed.append({"segment": key, "reason": item})
        loaded.bytes_read = sum(len(item.data) for item in fetched if not isinstance(item, str))
        _drop_replaced(loaded)
        return loaded

    def _cached(self, key: str) -> SegmentIndex | None:
        with self._lock:
            index = self._kept.get(key)
            if index is not None:
                self._kept.move_to_end(key)
            return index

    def _get(self, key: str) -> bytes | str:
        """An index's bytes, or the reason why there are none."""
        try:
            kept = None if self._files is None else self._files.get(key)
            if kept is not None:
                return kept
            data = self._store.get(key)
            if self._files is not None:
                SegmentIndex.open(data, key).check()  # nothing damaged is kept
                self._files.put(key, data)
            return data
        except NotFound:
            # Deletion leaves what a running query may have listed: this one went another way, and
            # its lines may be nowhere else.
            return f"index is gone: it was listed and is not there: {key}"
        except (Corrupt, NewerVersion) as error:
            return error.message
        except RanklogError as error:
            return f"index not read: {error.message}"

    def _opened(self, key: str, data: bytes | str) -> SegmentIndex | str:
        """The index, kept from now on; or the reason why it can't be read."""
        if isinstance(data, str):
            return data
        try:
            index = SegmentIndex.open(data, key)
            # All of it, now: damage that showed in the middle of planning would fail the query.
            index.check()
            _ = index.head, index.templates, index.longest_mixed
        except (Corrupt, NewerVersion) as error:
            return error.message
        with self._lock:
            if key in self._kept:
                return self._kept[key]
            self._kept[key] = index
            self._bytes += len(index.data) * _EXPANSION
            while self._bytes > self._bytes_max and len(self._kept) > 1:
                _, old = self._kept.popitem(last=False)
                self._bytes -= len(old.data) * _EXPANSION
        return index


def _drop_replaced(loaded: Loaded) -> None:
    """A reader that sees both a compacted index and what it replaces ignores the replaced."""
    replaced = {key for index in loaded.indexes for key in index.head.replaces}
    if replaced:
        loaded.indexes = [index for index in loaded.indexes if index.key not in replaced]
        loaded.failed = [item for item in loaded.failed if item["segment"] not in replaced]
