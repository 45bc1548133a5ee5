"""What an index keeps of headers of frames: columns, each hash and each stream once.

Pure. Frames of which nothing more than the name is known (indexes of before, merged with newer ones)
have no hashes. Audit, compaction and retention ask for frames; planners never do, so frames lie in a
section of their own and are unpacked when they are first looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, overload

from ranklog.layout.drops import packed_agent, shown_agent
from ranklog.layout.packed import pack_column, unpack_column
from ranklog.model.index import Contested, FrameRef

_HASH_BYTES = 16
_NONE = b"\0" * _HASH_BYTES
_ZEROS = _NONE.hex()
# Places of the header before that are none.
_NOWHERE, _ELSEWHERE = -1, -2


class FrameRefs(Sequence[FrameRef]):
    """Frames that are unpacked when they are first looked at, which may raise Corrupt."""

    __slots__ = ("_found", "_unpack")
    __hash__ = None  # type: ignore[assignment]  # it is compared by what it holds

    def __init__(self, unpack: Callable[[], tuple[FrameRef, ...]]) -> None:
        self._unpack = unpack
        self._found: tuple[FrameRef, ...] | None = None

    def _all(self) -> tuple[FrameRef, ...]:
        if self._found is None:
            self._found = self._unpack()
        return self._found

    @overload
    def __getitem__(self, at: int) -> FrameRef: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[FrameRef, ...]: ...
    def __getitem__(self, at: int | slice) -> FrameRef | tuple[FrameRef, ...]:
        return self._all()[at]

    def __len__(self) -> int:
        return len(self._all())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._all() == tuple(other)

    def __repr__(self) -> str:
        return repr(self._all())


def frames_to_list(
    frames: Sequence[FrameRef], known: Sequence[str], told: Sequence[str] = ()
) -> list[Any]:
    """What msgpack writes; `known`: streams of the index, `told`: agents that its head names; both are
    named by their place there."""
    headers = {_hash(frame.header_hash): at for at, frame in enumerate(frames)}
    before = [_place(headers, frame.previous) for frame in frames]
    agents = {
        name: at for at, name in enumerate(dict.fromkeys([*told, *(f.agent for f in frames)]))
    }
    parts = [part for frame in frames for part in frame.parts or ()]
    places = {name: at for at, name in enumerate(dict.fromkeys([*known, *(p[0] for p in parts)]))}
    return [
        len(frames),
        [packed_agent(name) for name in list(agents)[len(told) :]],
        pack_column([agents[frame.agent] for frame in frames]),
        pack_column([frame.number for frame in frames]),
        b"".join(_hash(frame.header_hash) for frame in frames),
        pack_column(before),
        b"".join(
            _hash(frame.previous)
            for frame, place in zip(frames, before, strict=True)
            if place == _ELSEWHERE
        ),
        b"".join(_hash(frame.payload_hash) for frame in frames),
        pack_column([frame.dropped for frame in frames]),
        pack_column([-1 if frame.parts is None else len(frame.parts) for frame in frames]),
        b"".join(bytes.fromhex(name) for name in list(places)[len(known) :]),
        pack_column([places[name] for name, _, _ in parts]),
        pack_column([first for _, first, _ in parts]),
        pack_column([end - first for _, first, end in parts]),
    ]


def frames_from_list(
    data: Sequence[Any], known: Sequence[str], told: Sequence[str] = ()
) -> tuple[FrameRef, ...]:
    """Inverse of `frames_to_list`. Raises ValueError, TypeError, IndexError on damage."""
    count, names, of, numbers, headers, before, others, payload, dropped, sizes, *rest = data
    agents = [*told, *map(shown_agent, names)]
    hashes = _split(headers, count)
    elsewhere = iter(_split(others, len(others) // _HASH_BYTES))
    previous = [
        "" if place == _NOWHERE else next(elsewhere) if place == _ELSEWHERE else hashes[place]
        for place in unpack_column(before, count)
    ]
    columns = (
        [agents[at] for at in unpack_column(of, count)],
        unpack_column(numbers, count),
        hashes,
        previous,
        _known(_split(payload, count)),
        _parts(unpack_column(sizes, count), known, *rest),
        unpack_column(dropped, count),
    )
    return tuple(map(FrameRef, *columns))


def _parts(
    sizes: Sequence[int],
    known: Sequence[str],
    ids: bytes,
    streams: Sequence[Any],
    firsts: Sequence[Any],
    rows: Sequence[Any],
) -> list[tuple[tuple[str, int, int], ...] | None]:
    """Parts of each frame; None where they are not known."""
    names = [*known, *_split(ids, len(ids) // _HASH_BYTES)]
    total = sum(size for size in sizes if size > 0)
    columns = (unpack_column(column, total) for column in (streams, firsts, rows))
    parts = [(names[at], first, first + size) for at, first, size in zip(*columns, strict=True)]
    found: list[tuple[tuple[str, int, int], ...] | None] = []
    at = 0
    for size in sizes:
        found.append(None if size < 0 else tuple(parts[at : at + size]))
        at += max(size, 0)
    return found


def _place(headers: dict[bytes, int], previous: str) -> int:
    return headers.get(_hash(previous), _ELSEWHERE) if previous else _NOWHERE


def _split(data: bytes, count: int) -> list[str]:
    """So many hashes."""
    if len(data) != count * _HASH_BYTES:
        raise ValueError("hashes are cut")
    text = data.hex()
    return [text[at : at + 2 * _HASH_BYTES] for at in range(0, len(text), 2 * _HASH_BYTES)]


def contested_to_map(contested: Sequence[Contested]) -> dict[str, Any]:
    """`{"contested": …}`; nothing where no line is: two frames of one number are rare."""
    if not contested:
        return {}
    return {
        "contested": [
            [bytes.fromhex(one.stream_id), one.first, one.end, bytes.fromhex(one.frame)]
            for one in contested
        ]
    }


def contested_from_map(data: Sequence[Any] | None) -> tuple[Contested, ...]:
    """Inverse of `contested_to_map`. Raises ValueError, TypeError on damage."""
    return tuple(
        Contested(stream_id.hex(), int(first), int(end), frame.hex())
        for stream_id, first, end, frame in data or ()
    )


def _hash(text: str) -> bytes:
    return bytes.fromhex(text) if text else _NONE


def _known(hashes: Sequence[str]) -> list[str]:
    """The same, "" for zeros."""
    return ["" if one == _ZEROS else one for one in hashes]


# --- before version 5 -----------------------------------------------------------------------------
def frames_from_head(data: dict[str, Any]) -> tuple[FrameRef, ...]:
    """Frames as heads up to version 3 have them. Raises ValueError, TypeError, KeyError on damage."""
    agents, numbers, hashes, count = data["frames"]
    size = len(hashes) // count if count else 0
    frames = tuple(
        FrameRef(agent, number, hashes[size * i : size * i + size].hex())
        for i, (agent, number) in enumerate(
            zip(unpack_column(agents, count), unpack_column(numbers, count), strict=True)
        )
    )
    return _with_parts(frames, data.get("frame_parts"))


def _with_parts(frames: tuple[FrameRef, ...], data: Sequence[Any] | None) -> tuple[FrameRef, ...]:
    if not data:
        return frames
    previous, payload, dropped, sizes, *rest = data
    count = len(frames)
    columns = (
        _known(_split(previous, count)),
        _known(_split(payload, count)),
        _parts(unpack_column(sizes, count), (), *rest),
        unpack_column(dropped, count),
    )
    return tuple(
        replace(frame, previous=before, payload_hash=paid, parts=parts, dropped=lines)
        for frame, before, paid, parts, lines in zip(frames, *columns, strict=True)
    )
