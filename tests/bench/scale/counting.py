"""A store that counts what it is asked, and how long each request took."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from threading import Lock

from ranklog.store.protocol import ObjectInfo, Store

# Keys of one page of S3's LIST.
PAGE_KEYS = 1_000


class CountingStore:
    """Requests by their kind (`PUT`, `GET`, `LIST`; `PUT data` by the folder below the tenant), bytes
    both ways, and seconds of each request. Threads may share it. No file is shown: all is requests."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = Lock()
        self.reset()

    def reset(self) -> None:
        """Count from nothing again."""
        self.requests: Counter[str] = Counter()
        self.seconds: dict[str, list[float]] = {"PUT": [], "GET": [], "LIST": []}
        self.bytes_put = self.bytes_got = 0

    @property
    def url(self) -> str:
        """See Store."""
        return self._store.url

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> str:
        """See Store."""
        started = time.perf_counter()
        try:
            return self._store.put(key, data, if_absent=if_absent)
        finally:
            self._note("PUT", key, started, put=len(data))

    def get(self, key: str) -> bytes:
        """See Store."""
        started = time.perf_counter()
        data = b""
        try:
            data = self._store.get(key)
            return data
        finally:
            self._note("GET", key, started, got=len(data))

    def get_range(self, key: str, start: int, length: int, *, if_match: str = "") -> bytes:
        """See Store."""
        started = time.perf_counter()
        try:
            return self._store.get_range(key, start, length, if_match=if_match)
        finally:
            self._note("GET", key, started, got=length)

    def list(self, prefix: str, *, start_after: str = "") -> Iterator[ObjectInfo]:
        """See Store. A page is a request."""
        yield from self._paged(prefix, self._store.list(prefix, start_after=start_after))

    def list_folders(self, prefix: str) -> Iterator[str]:
        """See Store."""
        yield from self._paged(prefix, self._store.list_folders(prefix))

    def delete(self, key: str) -> None:
        """See Store."""
        self._store.delete(key)

    def local_path(self, key: str) -> Path | None:
        """There is no file."""
        return None

    def _paged(self, prefix: str, items: Iterator) -> Iterator:  # type: ignore[type-arg]
        started = time.perf_counter()
        number = 0
        for number, item in enumerate(items, 1):
            if number % PAGE_KEYS == 1:
                self._note("LIST", prefix, started)
            yield item
            if number % PAGE_KEYS == 0:
                started = time.perf_counter()
        if number == 0:
            self._note("LIST", prefix, started)

    def _note(self, kind: str, key: str, started: float, *, put: int = 0, got: int = 0) -> None:
        folder = key.partition("/")[2].partition("/")[0]
        with self._lock:
            self.requests[kind] += 1
            self.requests[f"{kind} {folder}"] += 1
            self.seconds[kind].append(time.perf_counter() - started)
            self.bytes_put += put
            self.bytes_got += got
