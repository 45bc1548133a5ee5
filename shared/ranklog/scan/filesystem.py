"""Objects of which ranges are in memory, as DuckDB sees them: files of a file system of fsspec.

By itself, because importing fsspec takes as long as reading a dozen segments, and a store on disk needs
none of it.
"""

from __future__ import annotations

import io
import itertools
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from typing import Any

import fsspec

from ranklog.errors import Corrupt
from ranklog.limits import RANGE_GETS_IN_FLIGHT_MAX
from ranklog.scan.files import RangedObject

PROTOCOL = "ranklogscan"
_NEVER = datetime(1970, 1, 1, tzinfo=timezone.utc)  # objects do not change under their names


class RangedFiles(fsspec.AbstractFileSystem):  # type: ignore[misc]
    """The file system DuckDB sees: each scan's object under a name of its own."""

    protocol = PROTOCOL
    cachable = False

    def __init__(self) -> None:
        super().__init__()
        self._objects: dict[str, RangedObject] = {}
        self._names = itertools.count()
        self.pool = ThreadPoolExecutor(RANGE_GETS_IN_FLIGHT_MAX, thread_name_prefix="ranklog-get")

    def add(self, item: RangedObject) -> str:
        """The path under which DuckDB opens it."""
        name = f"{next(self._names)}.parquet"
        self._objects[name] = item
        return f"{PROTOCOL}://{name}"

    def remove(self, path: str) -> None:
        self._objects.pop(self._strip_protocol(path), None)

    def damage(self) -> Iterator[tuple[str, Corrupt]]:
        """Keys of the objects of which a part was found damaged, and what is said of it."""
        for item in self._objects.values():
            if item.damage is not None:
                yield item.key, item.damage

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        name = self._strip_protocol(path)
        return {"name": name, "size": self._objects[name].length, "type": "file"}

    def exists(self, path: str, **_: Any) -> bool:
        return self._strip_protocol(path) in self._objects

    def glob(self, path: str, **_: Any) -> list[str]:
        return [self._strip_protocol(path)] if self.exists(path) else []

    def modified(self, path: str) -> datetime:
        return _NEVER

    def _open(self, path: str, mode: str = "rb", **_: Any) -> RangedFile:
        return RangedFile(self._objects[self._strip_protocol(path)])

    def open(self, path: str, mode: str = "rb", **_: Any) -> RangedFile:
        return self._open(path, mode)


class _Position(threading.local):
    """Of one thread."""

    at = 0


class RangedFile(io.RawIOBase):
    """A position in a RangedObject, each thread's own: threads of DuckDB share a file, and one that
    seeks between another's seek and read would have it read the wrong bytes."""

    def __init__(self, item: RangedObject) -> None:
        self._object = item
        self._position = _Position()
        self.size = item.length

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position.at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position.at, io.SEEK_END: self.size}[whence]
        self._position.at = base + offset
        return self._position.at

    def read(self, size: int = -1) -> bytes:
        start = self._position.at
        data = self._object.read(start, self.size if size < 0 else start + size)
        self._position.at = start + len(data)
        return data

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)
