"""What the head of an index keeps of headers of frames beside their names: columns, streams named once.

Pure. Frames of which nothing more is known (indexes of before, merged with newer ones) have no hashes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ranklog.layout.packed import pack_column, unpack_column
from ranklog.model.index import FrameRef

_HASH_BYTES = 16
_NONE = b"\0" * _HASH_BYTES


def frame_parts_to_map(frames: Sequence[FrameRef]) -> dict[str, Any]:
    """`{"frame_parts": columns}`; nothing where no frame has parts."""
    if all(frame.parts is None for frame in frames):
        return {}
    parts = [part for frame in frames for part in frame.parts or ()]
    ids = {name: at for at, name in enumerate(dict.fromkeys(part[0] for part in parts))}
    return {
        "frame_parts": [
            b"".join(_hash(frame.previous) for frame in frames),
            b"".join(_hash(frame.payload_hash) for frame in frames),
            pack_column([frame.dropped for frame in frames]),
            pack_column([-1 if frame.parts is None else len(frame.parts) for frame in frames]),
            b"".join(bytes.fromhex(name) for name in ids),
            pack_column([ids[name] for name, _, _ in parts]),
            pack_column([first for _, first, _ in parts]),
            pack_column([end - first for _, first, end in parts]),
        ]
    }


def frames_with_parts(
    frames: tuple[FrameRef, ...], data: Sequence[Any] | None
) -> tuple[FrameRef, ...]:
    """The frames with what `frame_parts_to_map` said of them. Raises ValueError, TypeError on damage."""
    if not data:
        return frames
    previous, payload, dropped, sizes, ids, streams, firsts, rows = data
    count = len(frames)
    sizes, names = unpack_column(sizes, count), ids.hex()
    total = sum(size for size in sizes if size > 0)
    columns = (unpack_column(column, total) for column in (streams, firsts, rows))
    parts = [
        (names[2 * _HASH_BYTES * at : 2 * _HASH_BYTES * (at + 1)], first, first + size)
        for at, first, size in zip(*columns, strict=True)
    ]
    found, at = [], 0
    for i, (frame, size, lines) in enumerate(
        zip(frames, sizes, unpack_column(dropped, count), strict=True)
    ):
        own = None if size < 0 else tuple(parts[at : at + size])
        at += max(size, 0)
        hashes = [
            _shown(data[_HASH_BYTES * i : _HASH_BYTES * (i + 1)]) for data in (previous, payload)
        ]
        found.append(
            replace(frame, previous=hashes[0], payload_hash=hashes[1], parts=own, dropped=lines)
        )
    return tuple(found)


def _hash(text: str) -> bytes:
    return bytes.fromhex(text) if text else _NONE


def _shown(data: bytes) -> str:
    return "" if data == _NONE else data.hex()
