"""A folder as a store: a PUT appears under its name whole, or not at all.

An object is written to `.tmp/` and then linked (create-once: `os.link` fails where the name is
taken, whoever else writes) or renamed to its name. With `sync` its bytes, its name and new folders
are on the disk before `put` returns, so that a power cut can't leave a commit without what it
commits; deletions likewise. What a dead writer leaves in `.tmp/` is never listed, and is removed
when it is a day old. Etags are "": segments are named by their content and written once, and a copy
of the folder stays a store.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ranklog.errors import (
    AlreadyExists,
    BadInput,
    Corrupt,
    NewerVersion,
    NotFound,
    Unavailable,
)
from ranklog.limits import TEMPORARY_AGE_S_MAX
from ranklog.store.disk_files import place, sync_folder, translated, write_temporary
from ranklog.store.disk_list import subfolders, walk
from ranklog.store.disk_names import MARKER, folder_path, object_path
from ranklog.store.key import check_key
from ranklog.store.protocol import ObjectInfo

VERSION = 1
_TEMPORARY = ".tmp"


class DiskStore:
    """Objects in the folder `path`; processes and threads may share it.

    Raises BadInput (not a store, not a folder, no permission), NotFound (no such folder and not
    `create`), NewerVersion.
    """

    def __init__(self, path: str | os.PathLike[str], *, create: bool = True, sync: bool = True):
        self._root = Path(path).absolute()
        self._sync = sync
        self._tidied = False
        with translated(str(self._root)):
            _open_folder(self._root, create=create)

    @property
    def url(self) -> str:
        """The folder's absolute path."""
        return str(self._root)

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> str:
        """See Store."""
        target = self._path(key)
        if if_absent and target.exists():
            raise AlreadyExists(f"the object {key} is there already")
        self._check_there()  # what is mounted here may have gone: nothing goes below its folder
        with translated(key):
            self._tidy()
            temporary = write_temporary(self._root / _TEMPORARY, data, sync=self._sync)
            try:
                place(temporary, target, if_absent=if_absent, sync=self._sync)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(temporary)
            if self._sync:
                with suppress(FileNotFoundError):  # deleted again already
                    sync_folder(target.parent)
        return ""

    def get(self, key: str) -> bytes:
        """See Store."""
        try:
            with translated(key):
                return self._path(key).read_bytes()
        except NotFound:
            self._check_there()
            raise

    def get_range(self, key: str, start: int, length: int, *, if_match: str = "") -> bytes:
        """See Store. `if_match` is not looked at: see the module."""
        assert start >= 0 and length >= 0
        with translated(key), open(self._path(key), "rb", buffering=0) as file:
            parts = []
            missing = length
            while missing and (part := os.pread(file.fileno(), missing, start)):
                parts.append(part)
                start += len(part)
                missing -= len(part)
        if missing:
            raise Corrupt(f"{key}: {length} bytes asked, it ends {missing} bytes before them")
        return b"".join(parts)

    def list(self, prefix: str, *, start_after: str = "") -> Iterator[ObjectInfo]:
        """See Store. One folder's names are held at a time, per level."""
        bare = prefix.encode(errors="surrogateescape")
        folder = bare[: bare.rfind(b"/") + 1]
        after = start_after.encode(errors="surrogateescape")
        self._check_there()
        for encoded, path in walk(self._root / folder_path(folder), folder, bare, after):
            try:
                key = encoded.decode()
                status = os.stat(path)
            except (UnicodeDecodeError, FileNotFoundError):
                continue  # not one of ours; deleted since
            yield ObjectInfo(key, status.st_size, "", status.st_mtime_ns)

    def list_folders(self, prefix: str) -> Iterator[str]:
        """See Store. A folder without an object is not there."""
        bare = prefix.encode(errors="surrogateescape")
        assert not bare or bare.endswith(b"/")
        self._check_there()
        for name, path in sorted(subfolders(self._root / folder_path(bare), b"")):
            if next(walk(path, b"", b"", b""), None) is not None:
                yield prefix + name.decode(errors="surrogateescape")

    def delete(self, key: str) -> None:
        """See Store. Folders that it empties go, too."""
        path = self._path(key)
        with translated(key):
            try:
                os.unlink(path)
            except (FileNotFoundError, NotADirectoryError):
                return
            if self._sync:
                with suppress(FileNotFoundError):
                    sync_folder(path.parent)
        for parent in path.parents:
            if parent == self._root:
                return
            try:
                parent.rmdir()
            except OSError:
                return  # not empty

    def local_path(self, key: str) -> Path | None:
        """The file, whether it is there or not."""
        return self._path(key)

    def _check_there(self) -> None:
        """Raises Unavailable where the store itself has gone, so that no object of it is taken for deleted."""
        if not (self._root / MARKER).is_file():
            raise Unavailable(
                f"the store {self._root} is not there any more", hint="mount or restore its folder"
            )

    def _path(self, key: str) -> Path:
        return self._root / object_path(check_key(key))

    def _tidy(self) -> None:
        """Remove what died writers left, once per store object and before its first PUT."""
        if self._tidied:
            return
        self._tidied = True
        oldest = time.time() - TEMPORARY_AGE_S_MAX
        with suppress(FileNotFoundError):
            for entry in os.scandir(self._root / _TEMPORARY):
                with suppress(FileNotFoundError):
                    if entry.stat(follow_symlinks=False).st_mtime < oldest:
                        os.unlink(entry.path)


def _open_folder(root: Path, *, create: bool) -> None:
    """Check the marker; write it into a new or empty folder if `create`."""
    marker = root / MARKER
    text = _read_marker(marker)
    if text is None:
        if not root.exists() and not create:
            raise NotFound(
                f"no store at {root}", hint="import or send logs into it first, or check --store"
            )
        try:
            root.mkdir(parents=True, exist_ok=True)
        except (FileNotFoundError, FileExistsError) as error:  # /proc, a dangling link
            raise BadInput(f"no folder can be made at {root}", hint="name another one") from error
        others = set(os.listdir(root)) - {_TEMPORARY, MARKER}
        # Whoever made it a store meanwhile may have put objects into it, too.
        text = _read_marker(marker)
        if text is None:
            if others or not create:
                raise BadInput(f"not a ranklog store: {root} has no {MARKER}", hint=_hint(others))
            text = _write_marker(marker)
    _check_version(marker, text)


def _read_marker(marker: Path) -> bytes | None:
    try:
        return marker.read_bytes()
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        raise BadInput(f"{marker.parent} is a file", hint="a store is a folder; name one") from None


def _write_marker(marker: Path) -> bytes:
    """The marker's bytes, ours or those of who was faster."""
    text = json.dumps({"version": VERSION}).encode() + b"\n"
    temporary = write_temporary(marker.parent / _TEMPORARY, text, sync=True)
    try:
        place(temporary, marker, if_absent=True, sync=True)
    except FileExistsError:
        return marker.read_bytes()
    finally:
        os.unlink(temporary)
    return text


def _check_version(marker: Path, text: bytes) -> None:
    try:
        version = int(json.loads(text)["version"])
    except (ValueError, KeyError, TypeError) as error:
        raise Corrupt(f"{marker} does not say its version") from error
    if version > VERSION:
        raise NewerVersion(
            f"{marker} has version {version}, this ranklog knows {VERSION}", hint="upgrade ranklog"
        )


def _hint(others: set[str]) -> str:
    """What to do with a folder that is no store."""
    if {"records", "consumers"} <= others:
        return "it is a local stream: `ranklog ingest` brings it into a store"
    return "name a store's folder, or a new or empty one to import into"
