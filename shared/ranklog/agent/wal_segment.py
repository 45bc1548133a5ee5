"""The bytes of one file of the agent's log: the state it begins with, then blocks.

    head     magic 8 · number 8 · length of state 4 · CRC 4 · state
    block    magic 4 · index 4 · length of state 4 · frames 4 · CRC 4
             per frame: flags 1 · class 1 · length of key 2 · length of frame 4 · CRC 4
             state · per frame: partition key, frame

A block is whole or it is not there: its CRC is over number, index, table and state, and the table
has the CRC of each frame. The number is in it so that a file that is used again never shows what an
earlier use left behind. Flags are no part of it: they are set in place when a frame is sent or
dropped.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from zlib import crc32

import msgpack

MAGIC = b"RLWAL\x001\n"
HEAD = struct.Struct("<8sQII")
BLOCK_MAGIC = 0x4B4C4257
BLOCK = struct.Struct("<IIIII")
ENTRY = struct.Struct("<BBHII")
_PLACE = struct.Struct("<QI")
# Flags of a frame.
SENT, DROPPED = 1, 2
# A claim above these is damage.
FRAMES_MAX = 65_536
STATE_BYTES_MAX = 64 * 1024 * 1024


class WalFrame(NamedTuple):
    """A finished frame on its way: its class (see `framer`), partition key and bytes."""

    klass: int
    key: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a frame of a block lies. `at` is the offset of its bytes, `flags_at` of its flags."""

    flags: int
    klass: int
    key: str
    at: int
    length: int
    crc: int
    flags_at: int


@dataclass(frozen=True, slots=True)
class Block:
    """A block without its frames' bytes. `end` is where the next one begins."""

    at: int
    end: int
    index: int
    state: bytes
    entries: tuple[Entry, ...]


def encode_head(number: int, state: dict[str, Any]) -> bytes:
    """What a file begins with."""
    packed = pack(state)
    return HEAD.pack(MAGIC, number, len(packed), _crc(number, 0, packed)) + packed


def read_head(fd: int) -> tuple[int, dict[str, Any], int] | None:
    """(number, state, offset of the first block), or None where there is no whole head."""
    data = os.pread(fd, HEAD.size, 0)
    if len(data) < HEAD.size:
        return None
    magic, number, length, crc = HEAD.unpack(data)
    if magic != MAGIC or length > STATE_BYTES_MAX:
        return None
    packed = os.pread(fd, length, HEAD.size)
    if len(packed) < length or _crc(number, 0, packed) != crc:
        return None
    return number, unpack(packed), HEAD.size + length


def encode_block(number: int, index: int, frames: Sequence[WalFrame], state: bytes) -> bytes:
    """One block, flags clear."""
    keys = [frame.key.encode("utf-8", "surrogatepass") for frame in frames]
    table = b"".join(
        ENTRY.pack(0, frame.klass, len(key), len(frame.data), crc32(frame.data))
        for frame, key in zip(frames, keys, strict=True)
    )
    head = BLOCK.pack(
        BLOCK_MAGIC, index, len(state), len(frames), _crc(number, index, table, state)
    )
    parts = [head, table, state]
    for frame, key in zip(frames, keys, strict=True):
        parts += [key, frame.data]
    return b"".join(parts)


def read_block(fd: int, number: int, at: int, index: int, *, whole: bool) -> Block | None:
    """The block at an offset, or None where no whole one is.

    `whole`: frames' bytes are checked too (those that are not dropped), so that a block that was cut
    short by a kill is not one.
    """
    data = os.pread(fd, BLOCK.size, at)
    if len(data) < BLOCK.size:
        return None
    magic, found_index, state_bytes, count, crc = BLOCK.unpack(data)
    if magic != BLOCK_MAGIC or found_index != index:
        return None
    if count > FRAMES_MAX or state_bytes > STATE_BYTES_MAX:
        return None
    table_at = at + BLOCK.size
    table = os.pread(fd, count * ENTRY.size + state_bytes, table_at)
    if len(table) < count * ENTRY.size + state_bytes:
        return None
    state = table[count * ENTRY.size :]
    bare = bytearray(table[: count * ENTRY.size])
    bare[:: ENTRY.size] = bytes(count)
    if _crc(number, index, bytes(bare), state) != crc:
        return None
    entries, end = _entries(fd, table[: count * ENTRY.size], table_at, table_at + len(table))
    if whole and not all(_is_whole(fd, entry) for entry in entries):
        return None
    return Block(at, end, index, state, entries)


def _entries(fd: int, table: bytes, table_at: int, at: int) -> tuple[tuple[Entry, ...], int]:
    entries = []
    for row, (flags, klass, key_bytes, length, crc) in enumerate(ENTRY.iter_unpack(table)):
        key = os.pread(fd, key_bytes, at).decode("utf-8", "replace")
        at += key_bytes
        flags_at = table_at + row * ENTRY.size
        entries.append(Entry(flags, klass, key, at, length, crc, flags_at))
        at += length
    return tuple(entries), at


def read_frame(fd: int, entry: Entry) -> bytes | None:
    """A frame's bytes, or None where they are not what was written."""
    data = os.pread(fd, entry.length, entry.at)
    return data if len(data) == entry.length and crc32(data) == entry.crc else None


def _is_whole(fd: int, entry: Entry) -> bool:
    return bool(entry.flags & DROPPED) or read_frame(fd, entry) is not None


def _crc(number: int, index: int, *parts: bytes) -> int:
    crc = crc32(_PLACE.pack(number, index))
    for part in parts:
        crc = crc32(part, crc)
    return crc


def pack(state: dict[str, Any]) -> bytes:
    """A state, or a change of one."""
    packed: bytes = msgpack.packb(state, unicode_errors="surrogatepass")
    return packed


def unpack(data: bytes) -> dict[str, Any]:
    """What `pack` packed; {} for anything else."""
    try:
        state = msgpack.unpackb(data, unicode_errors="surrogatepass", strict_map_key=False)
    except (ValueError, msgpack.UnpackException):
        return {}
    return state if isinstance(state, dict) else {}
