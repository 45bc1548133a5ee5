"""Indexes of a store that is far away, kept as files of this machine for the next process.

An index never changes under its key. Each file says by a hash what it holds and for which key of
which store; one that does not fit is removed and read from the store again. Files appear whole, so
processes can share the folder; whoever writes keeps it under its size. Nothing here ever fails a query.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ranklog import limits
from ranklog.store.protocol import Store

_MAGIC = b"RLIF\x01\x00"
_HASH_BYTES = 16
# The time of last use is written at most this often.
_TOUCH_S = 600
# What a process that died left half written is removed after this.
_TEMPORARY_S = 3_600
_TEMPORARY = ".tmp-"


class IndexFiles:
    """Files of one store below `folder`, which other stores may share. Threads may share it."""

    def __init__(self, folder: Path, store: str, bytes_max: int) -> None:
        self._folder = folder
        self._store = store
        self._bytes_max = bytes_max
        self._written: int | None = None  # bytes since the folder was last looked through
        self._lock = threading.Lock()

    def get(self, key: str) -> bytes | None:
        """The index, None where it is not here."""
        path = self._path(key)
        try:
            found = path.read_bytes()
            head = len(_MAGIC) + _HASH_BYTES
            data = found[head:]
            if found[:head] != _MAGIC + self._digest(key, data):
                path.unlink()
                return None
            now_s = time.time()
            if now_s - path.stat().st_mtime > _TOUCH_S:
                os.utime(path, (now_s, now_s))
        except OSError:
            return None
        return data

    def put(self, key: str, data: bytes) -> None:
        """Keep it, if the disk lets us."""
        path = self._path(key)
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.parent.mkdir(mode=0o700, exist_ok=True)
            handle, temporary = tempfile.mkstemp(prefix=_TEMPORARY, dir=path.parent)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(_MAGIC + self._digest(key, data) + data)
                os.replace(temporary, path)
            except OSError:
                os.unlink(temporary)
                raise
            self._count(len(data))

    def _path(self, key: str) -> Path:
        name = hashlib.blake2b(f"{self._store}\0{key}".encode(), digest_size=20).hexdigest()
        return self._folder / name[:2] / name

    def _digest(self, key: str, data: bytes) -> bytes:
        digest = hashlib.blake2b(f"{self._store}\0{key}\0".encode(), digest_size=_HASH_BYTES)
        digest.update(data)
        return digest.digest()

    def _count(self, written: int) -> None:
        """Look through the folder with the first write, and each time a good part of it is new."""
        with self._lock:
            first = self._written is None
            self._written = (self._written or 0) + written
            if not first and self._written < self._bytes_max // 16:
                return
            self._written = 0
        self._evict()

    def _evict(self) -> None:
        """Remove the files that were not used longest, until a tenth of the room is free."""
        files: list[tuple[float, int, str]] = []
        for entry in (e for folder in _entries(self._folder) for e in _entries(Path(folder.path))):
            with suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                if not entry.name.startswith(_TEMPORARY):
                    files.append((status.st_mtime, status.st_size, entry.path))
                elif time.time() - status.st_mtime > _TEMPORARY_S:
                    os.unlink(entry.path)
        total = sum(size for _, size, _ in files)
        if total <= self._bytes_max:
            return
        for _, size, path in sorted(files):
            if total <= self._bytes_max * 9 // 10:
                return
            with suppress(OSError):  # another process was faster
                os.unlink(path)
            total -= size


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError:
        return []


def index_files_of(store: Store, environ: Mapping[str, str] = os.environ) -> IndexFiles | None:
    """The files for a store whose indexes are worth keeping: one that says which service it is at.

    A store on disk has none: reading it again costs the same (docs/decisions/0009-index-files.md).
    """
    identity = getattr(store, "identity", None)
    if not isinstance(identity, str):
        return None
    home, cache = environ.get("HOME"), environ.get("XDG_CACHE_HOME")
    if cache and Path(cache).is_absolute():
        base = Path(cache)
    elif home:
        base = Path(home) / ".cache"
    else:
        return None
    return IndexFiles(base / "ranklog" / "indexes", identity, _room(base))


def _room(base: Path) -> int:
    """At most half of what is free, however large the limit is."""
    while not base.exists() and base != base.parent:
        base = base.parent
    try:
        free = shutil.disk_usage(base).free
    except OSError:
        free = 0
    return min(limits.INDEX_FILES_BYTES_MAX, free // 2)
