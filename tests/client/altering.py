"""Segments written anew with other rows, name, hash and checksums re-made: only what rows add up to tells."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from typing import Any

from ranklog.compact.contents import folders, read_contents
from ranklog.compact.merge import material
from ranklog.compact.streams import nothing_hidden, rows_that_count
from ranklog.layout import keys
from ranklog.layout.build import Beside, BuiltSegment
from ranklog.layout.index import SegmentIndex
from ranklog.layout.rows import I64
from ranklog.model.index import SegmentRef
from ranklog.store.memory import MemoryStore

_SECTION = struct.Struct("<4sIII")
Build = Callable[[Any, I64, Beside], BuiltSegment]


def live_indexes(store: MemoryStore, tenant: str = "acme") -> list[SegmentIndex]:
    """With a segment, in order of keys."""
    found = [
        index
        for folder in folders(store, tenant)
        for contents in read_contents(store, folder)
        for index in contents.live()
        if index.head.segment is not None
    ]
    return sorted(found, key=lambda index: index.key)


def write_altered(
    store: MemoryStore, index: SegmentIndex, change: Callable[[Any], Any], build: Build
) -> str:
    """Put the segment of an index anew with changed rows, and the index that fits it, but for the sums of
    rows, under its old name; returns the segment's key."""
    assert index.head.segment is not None
    old = index.head.segment.key
    made = material(index.head.kind, [index], [store.get(old)], nothing_hidden)
    rows = change(made.rows)
    beside = Beside(
        notes=made.streams.notes, frames=tuple(index.head.frames), replaces=index.head.replaces
    )
    built = build(rows, rows_that_count(rows, {}), beside)
    key = f"{old.rsplit('.', 2)[0]}.{built.segment.hash}.parquet"
    store.delete(old)
    etag = store.put(key, built.segment.data)
    assert keys.segment_is_named(store.get(key), key)
    ref = SegmentRef(key, len(built.segment.data), built.segment.hash, etag)
    store.put(index.key, with_section(built.index(ref), b"rsum", section_of(index.data, b"rsum")))
    return key


def section_of(data: bytes, tag: bytes) -> bytes:
    """The stored bytes of a section of an index."""
    _, _, count = struct.unpack_from("<4sHH", data)
    for name, at, length, _ in _SECTION.iter_unpack(data[12 : 12 + 16 * count]):
        if name == tag:
            return data[at : at + length]
    raise KeyError(tag)


def with_section(data: bytes, tag: bytes, stored: bytes | None) -> bytes:
    """The index with another section under this tag (None: without it), its checksums re-made."""
    magic, version, count = struct.unpack_from("<4sHH", data)
    sections = {
        name: data[at : at + length]
        for name, at, length, _ in _SECTION.iter_unpack(data[12 : 12 + 16 * count])
        if name != tag
    }
    if stored is not None:
        sections[tag] = stored
    table, at = b"", 12 + 16 * len(sections)
    for name, part in sections.items():
        table += _SECTION.pack(name, at, len(part), zlib.crc32(part))
        at += len(part)
    check = zlib.crc32(struct.pack("<HH", version, len(sections)) + table)
    head = struct.pack("<4sHHI", magic, version, len(sections), check)
    return b"".join([head, table, *sections.values()])
