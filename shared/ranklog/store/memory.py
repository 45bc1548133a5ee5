"""A store in memory, for tests and previews: the same promises as S3, without the network."""

from __future__ import annotations

import hashlib
import threading
import time
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from pathlib import Path

from ranklog.errors import AlreadyExists, Corrupt, NotFound, PreconditionFailed
from ranklog.store.key import check_key
from ranklog.store.protocol import ObjectInfo


class MemoryStore:
    """Objects of one process; threads may share it. Etags are MD5, as S3's for a plain PUT."""

    def __init__(self) -> None:
        self._objects: dict[str, tuple[bytes, str]] = {}
        self._put_ns: dict[str, int] = {}
        self._keys: list[str] = []  # sorted; code point order is the order of UTF-8 bytes
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        """It can't be opened a second time by its name."""
        return "memory:"

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> str:
        """See Store."""
        check_key(key)
        etag = f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"'
        with self._lock:
            if key not in self._objects:
                insort(self._keys, key)
            elif if_absent:
                raise AlreadyExists(f"the object {key} is there already")
            self._objects[key] = (bytes(data), etag)
            self._put_ns[key] = time.time_ns()
        return etag

    def get(self, key: str) -> bytes:
        """See Store."""
        return self._find(key)[0]

    def get_range(self, key: str, start: int, length: int, *, if_match: str = "") -> bytes:
        """See Store."""
        assert start >= 0 and length >= 0
        data, etag = self._find(key)
        if if_match and if_match != etag:
            raise PreconditionFailed(f"the object {key} is {etag}, not {if_match}")
        found = data[start : start + length]
        if len(found) < length:
            raise Corrupt(f"{key}: {length} bytes asked at {start}, the object has {len(data)}")
        return found

    def list(self, prefix: str, *, start_after: str = "") -> Iterator[ObjectInfo]:
        """See Store. Objects that are put while it is listed may or may not be seen."""
        after = start_after
        inclusive = not start_after or start_after < prefix
        if inclusive:
            after = prefix
        while True:
            with self._lock:
                at = (bisect_left if inclusive else bisect_right)(self._keys, after)
                if at == len(self._keys) or not self._keys[at].startswith(prefix):
                    return
                after = self._keys[at]
                data, etag = self._objects[after]
                modified_ns = self._put_ns.get(after)
            inclusive = False
            yield ObjectInfo(after, len(data), etag, modified_ns)

    def list_folders(self, prefix: str) -> Iterator[str]:
        """See Store."""
        after = ""
        while True:
            # Past a folder come keys that sort after every key in it: "/" + 1 is "0".
            with self._lock:
                at = bisect_left(self._keys, max(prefix, after))
                while at < len(self._keys) and self._keys[at].startswith(prefix):
                    if "/" in self._keys[at][len(prefix) :]:
                        break
                    at += 1
                else:
                    return
                key = self._keys[at]
            folder = key[: key.index("/", len(prefix)) + 1]
            yield folder
            after = folder[:-1] + "0"

    def delete(self, key: str) -> None:
        """See Store."""
        check_key(key)
        with self._lock:
            if self._objects.pop(key, None) is not None:
                del self._keys[bisect_left(self._keys, key)]
                self._put_ns.pop(key, None)

    def local_path(self, key: str) -> Path | None:
        """There is no file."""
        return None

    def _find(self, key: str) -> tuple[bytes, str]:
        check_key(key)
        with self._lock:
            found = self._objects.get(key)
        if found is None:
            raise NotFound(f"no object {key}")
        return found
