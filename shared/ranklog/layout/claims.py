"""Whose a stored line is, where two frames claim its number: that of the smaller hash, on every reader alike.

A frame claims the seq ranges that its header names. A row of a segment belongs to the smallest hash
among the frames that its index names and that claim the row's number; where a merge knows better, the
index says so (`contested`). So neither the order of arrival, nor how a batch was cut, nor compaction
changes which of two different lines an answer shows. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from ranklog.errors import Corrupt
from ranklog.model.index import Contested, FrameRef, IndexHead, StreamEntry


class Claim(NamedTuple):
    """A half-open seq range of a stream. `frame`: hash of the header of the frame, "" where nothing is
    known (it comes first); `content`: what frames of the same lines have in common."""

    first: int
    end: int
    frame: str
    content: str


T = TypeVar("T")


def layers(pieces: Iterable[tuple[int, int, T]]) -> Iterator[tuple[int, int, list[T]]]:
    """(first, end, what lies there) of half-open ranges; ascending, holes left out."""
    waiting = sorted((p for p in pieces if p[0] < p[1]), key=lambda p: p[0], reverse=True)
    active: list[tuple[int, int, T]] = []
    at = 0
    while waiting or active:
        if not active:
            at = waiting[-1][0]
        while waiting and waiting[-1][0] == at:
            active.append(waiting.pop())
        end = min(piece[1] for piece in active)
        if waiting:
            end = min(end, waiting[-1][0])
        yield at, end, [piece[2] for piece in active]
        at = end
        active = [piece for piece in active if piece[1] > at]


def are_rivals(claims: Collection[Claim]) -> bool:
    """Whether they say different things of the same lines, as far as it is known."""
    known = [claim for claim in claims if claim.frame]
    return len({one.frame for one in known}) > 1 and len({one.content for one in known}) > 1


def claims_by_stream(
    frames: Iterable[FrameRef], ids: Collection[str] | None = None
) -> dict[str, list[Claim]]:
    """What the frames claim of each stream, or of those in `ids`; as the frames stand."""
    found: dict[str, list[Claim]] = {}
    for frame in frames:
        for stream_id, first, end in frame.parts or ():
            if ids is None or stream_id in ids:
                content = f"{frame.payload_hash or frame.header_hash} {first}"
                claim = Claim(first, end, frame.header_hash, content)
                found.setdefault(stream_id, []).append(claim)
    return found


def rival_streams(frames: Iterable[FrameRef]) -> set[str]:
    """Streams of which two frames may claim the same number. Most frames follow each other."""
    reached: dict[str, int] = {}
    found = set()
    before = ""
    for frame in sorted(frames, key=lambda one: (one.agent, one.number, one.header_hash)):
        if frame.header_hash == before:
            continue  # several indexes name it
        before = frame.header_hash
        for stream_id, first, end in frame.parts or ():
            if first < reached.get(stream_id, 0):
                found.add(stream_id)
            reached[stream_id] = max(end, reached.get(stream_id, 0))
    return found


def contested_in(frames: Sequence[FrameRef]) -> tuple[Contested, ...]:
    """Lines that several of the frames claim with different content, and whose they are."""
    ids = rival_streams(frames)
    found = [
        Contested(stream_id, first, end, smallest(there).frame)
        for stream_id, claims in (claims_by_stream(frames, ids) if ids else {}).items()
        for first, end, there in layers((one.first, one.end, one) for one in claims)
        if are_rivals(there)
    ]
    return joined(found)


def lines_lost(frames: Sequence[FrameRef]) -> dict[str, int]:
    """By frame how many of its lines another frame has, with other content and a smaller hash."""
    ids = rival_streams(frames)
    lost: dict[str, int] = {}
    for claims in (claims_by_stream(frames, ids) if ids else {}).values():
        for first, end, there in layers((one.first, one.end, one) for one in claims):
            winner = smallest(there)
            for frame in {one.frame for one in there if one.content != winner.content}:
                lost[frame] = lost.get(frame, 0) + end - first
    return lost


def smallest(claims: Iterable[Claim]) -> Claim:
    """The claim that wins."""
    return min(claims, key=lambda claim: claim.frame)


def joined(contested: Iterable[Contested]) -> tuple[Contested, ...]:
    """The same, sorted, neighbours of one frame as one."""
    found: list[Contested] = []
    for one in sorted(set(contested)):
        last = found[-1] if found else None
        if last and (last.stream_id, last.end, last.frame) == (one.stream_id, one.first, one.frame):
            found[-1] = last._replace(end=one.end)
        else:
            found.append(one)
    return tuple(found)


class Claims:
    """Of the rows of one segment, by its index's head; nothing is computed before it is asked."""

    def __init__(self, head: IndexHead) -> None:
        self._head = head
        self._known: dict[str, list[Claim]] | None = None

    def of(self, entry: StreamEntry) -> list[Claim]:
        """Claims that together are the entry's ranges: whose each row is."""
        if self._known is None:
            try:
                self._known = claims_by_stream(self._head.frames)
            except Corrupt:
                self._known = {}  # with right sums and no sense: whose rows they are is not known
        pieces: list[tuple[int, int, tuple[int, Claim | None]]] = [
            (first, end, (_HERE, None)) for first, end in entry.ranges
        ]
        for claim in self._known.get(entry.stream_id, ()):
            pieces.append((claim.first, claim.end, (_CLAIMED, claim)))
        for one in self._head.contested:
            if one.stream_id == entry.stream_id:
                claim = Claim(one.first, one.end, one.frame, one.frame)
                pieces.append((one.first, one.end, (_CERTAIN, claim)))
        return [
            _owner(there)._replace(first=first, end=end)
            for first, end, there in layers(pieces)
            if any(kind == _HERE for kind, _ in there)
        ]


_HERE, _CLAIMED, _CERTAIN = range(3)


def _owner(there: Sequence[tuple[int, Claim | None]]) -> Claim:
    """What the index says, else the smallest hash, else unknown."""
    for kind in (_CERTAIN, _CLAIMED):
        found = [claim for its, claim in there if its == kind and claim is not None]
        if found:
            return smallest(found)
    return Claim(0, 0, "", "")
