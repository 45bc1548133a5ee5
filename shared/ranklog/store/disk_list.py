"""The keys below a folder of a disk store, in order, without holding more than a folder a level."""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterator
from pathlib import Path

from ranklog.store.disk_files import translated
from ranklog.store.disk_names import MARKER, decode_name, is_continued, is_ours


def walk(path: Path, base: bytes, prefix: bytes, after: bytes) -> Iterator[tuple[bytes, str]]:
    """(key, path) of objects below a folder whose keys begin with `base`, in order of the key's bytes."""
    plain: list[tuple[bytes, bool, os.DirEntry[str]]] = []
    longer = []
    for entry in _scan(path):
        is_folder = entry.is_dir(follow_symlinks=False)
        key = base + decode_name(entry.name)
        if not is_folder:
            plain.append((key, False, entry))
        elif is_continued(entry.name):
            if _may_hold(key, prefix):
                longer.append(walk(Path(entry.path), key, prefix, after))
        elif _may_hold(key + b"/", prefix):
            plain.append((key + b"/", True, entry))
    plain.sort(key=lambda item: item[0])
    # Names too long for one folder interleave with their neighbours.
    return (
        heapq.merge(_walk_plain(plain, prefix, after), *longer)
        if longer
        else _walk_plain(plain, prefix, after)
    )


def _walk_plain(
    entries: list[tuple[bytes, bool, os.DirEntry[str]]], prefix: bytes, after: bytes
) -> Iterator[tuple[bytes, str]]:
    for key, is_folder, entry in entries:
        if not is_folder:
            if key > after and key.startswith(prefix):
                yield key, entry.path
        elif key > after or after.startswith(key):
            yield from walk(Path(entry.path), key, prefix, after)


def _may_hold(base: bytes, prefix: bytes) -> bool:
    return base.startswith(prefix) or prefix.startswith(base)


def subfolders(path: Path, base: bytes) -> Iterator[tuple[bytes, Path]]:
    for entry in _scan(path):
        if not entry.is_dir(follow_symlinks=False):
            continue
        name = base + decode_name(entry.name)
        if is_continued(entry.name):
            yield from subfolders(Path(entry.path), name)
        else:
            yield name + b"/", Path(entry.path)


def _scan(path: Path) -> Iterator[os.DirEntry[str]]:
    """The entries that stand for keys; none where there is no such folder."""
    with translated(str(path)):
        try:
            with os.scandir(path) as entries:
                found = list(entries)
        except (FileNotFoundError, NotADirectoryError):
            return
    for entry in found:
        if entry.name != MARKER and is_ours(entry.name, folder=entry.is_dir(follow_symlinks=False)):
            yield entry
