"""References to files beside the logs: profiler traces, memory snapshots, images.

What is kept is where a file is, not the file. A line names it at once; whether it is there, its size
and hash are found by a thread that ends when nothing is left to look at (hashing and reading let
other threads run).
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from pathlib import Path, PurePath
from typing import Any

from ranklog.produce import trouble

# Of a larger file so much is hashed, and the reference says so.
FILE_HASH_BYTES_MAX = 1024 * 1024 * 1024
# Files whose size and hash are still to be found; over it a reference has neither.
WAITING_MAX = 1_024
# Entries of a folder that are counted into its size.
FOLDER_ENTRIES_MAX = 10_000
_KINDS = (
    ("profiler trace", (".pt.trace.json", ".pt.trace.json.gz", "trace.json", "trace.json.gz")),
    ("profiler trace", (".nsys-rep", ".ncu-rep", ".qdrep", ".prof", ".pstats", ".perfetto-trace")),
    ("memory snapshot", (".pickle", ".snapshot", ".memsnap")),
    ("image", (".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg")),
    ("checkpoint", (".pt", ".pth", ".safetensors", ".ckpt", ".distcp")),
    ("flight record", ("nccl_trace", "flight_recorder")),
    ("table", (".csv", ".tsv", ".parquet", ".jsonl")),
    ("report", (".html", ".pdf", ".md")),
)

Tell = Callable[[dict[str, Any]], None]


def kind_of(name: str) -> str:
    """What a file of that name is likely to be."""
    lowered = name.lower()
    for kind, endings in _KINDS:
        if lowered.endswith(endings) or (kind == "flight record" and endings[0] in lowered):
            return kind
    return "file"


def reference(path: str | os.PathLike[str], kind: str | None) -> dict[str, Any]:
    """What is known of a file without looking at it: a network file system may take its time."""
    name = os.path.abspath(os.fspath(path))
    return {"path": name, "kind": kind or kind_of(PurePath(name).name), "time_ns": time.time_ns()}


def wrong_with(path: str | os.PathLike[str]) -> str:
    """Why nothing can be at a path, wherever it is looked for; "" where something can."""
    name = os.fspath(path)
    if not name:
        return "an empty path"
    return "a path with a NUL character" if "\0" in name else ""


def look_at(found: dict[str, Any]) -> dict[str, Any]:
    """The reference with size, time of change and hash; with the error where it can't be read."""
    path = Path(found["path"])
    try:
        status = path.stat()
        found = found | {"bytes": status.st_size, "changed_ns": status.st_mtime_ns}
        if path.is_dir():
            return found | {"bytes": _folder_bytes(path), "folder": True}
        part = (
            {} if status.st_size <= FILE_HASH_BYTES_MAX else {"hashed_bytes": FILE_HASH_BYTES_MAX}
        )
        return found | part | {"blake2b": hash_file(path)}
    except OSError as error:
        return found | {"error": os.strerror(error.errno or 0)}


def hash_file(path: Path, bytes_max: int = FILE_HASH_BYTES_MAX) -> str:
    """blake2b-128 of a file's first `bytes_max` bytes, in hex. Raises OSError."""
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb", buffering=0) as file:
        while bytes_max > 0 and (chunk := file.read(min(1024 * 1024, bytes_max))):
            digest.update(chunk)
            bytes_max -= len(chunk)
    return digest.hexdigest()


def _folder_bytes(path: Path) -> int:
    total, left = 0, FOLDER_ENTRIES_MAX
    for folder, _, names in os.walk(path):
        for name in names:
            left -= 1
            if left < 0:
                return total
            total += os.lstat(os.path.join(folder, name)).st_size
    return total


class Lookout:
    """Looks at files one after the other, in a thread that is there only while there are some."""

    def __init__(self, tell: Tell, warn: Tell = lambda found: None) -> None:
        """`tell` of each file; `warn` of one that can't be read, in the context that it was added in."""
        self._tell, self._warn = tell, warn
        self._waiting: deque[tuple[dict[str, Any], Context]] = deque()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def add(self, found: dict[str, Any]) -> None:
        """Look at the file some time from now; without room, tell what is known."""
        if len(self._waiting) >= WAITING_MAX:
            self._tell(found)
            return
        self._waiting.append((found, copy_context()))
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._work, name="ranklog-attach", daemon=True
                )
                self._thread.start()

    def wait(self, timeout_s: float) -> None:
        """Until all files were looked at, or the time-out; those left are told as they are."""
        thread = self._thread
        if thread is not None:
            thread.join(max(0.0, timeout_s))
        while self._waiting:
            self._tell(self._waiting.popleft()[0])

    def forked(self) -> None:
        """In a forked child: the thread, the lock and the files are the parent's."""
        self._waiting.clear()
        self._thread = None
        self._lock = threading.Lock()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._thread = None
                    return
            try:
                found, context = self._waiting.popleft()
                found = look_at(found)
                self._tell(found)
                if "error" in found:
                    context.run(self._warn, found)
            except Exception:
                trouble.swallow("looking at an attached file")
