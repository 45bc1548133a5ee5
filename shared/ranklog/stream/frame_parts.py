"""What every frame being built has: its place in the chain, and what is said of its streams."""

from __future__ import annotations

from typing import TypeAlias

from ranklog.errors import TooLarge
from ranklog.limits import MANIFEST_BYTES_MAX
from ranklog.model.frame import Drop, Fence, Frame, FrameStream, StreamEnd
from ranklog.model.stream import Stream

# A builder has a property of the built-in's name.
Bytes: TypeAlias = bytes
# What a stream or call site adds to the header besides its words; generous.
HEADER_ENTRY_BYTES = 96


class OpenStream:
    """A stream's part of the frame being built."""

    __slots__ = (
        "alive_ns",
        "drops",
        "end",
        "fences",
        "first_seq",
        "index",
        "manifests",
        "next_seq",
        "stream",
    )

    def __init__(self, stream: Stream, index: int, seq: int) -> None:
        self.stream = stream
        self.index = index
        self.first_seq = self.next_seq = seq
        self.fences: list[Fence] = []
        self.drops: list[Drop] = []
        self.end: StreamEnd | None = None
        self.manifests: list[Bytes] = []
        self.alive_ns: int | None = None


class FrameParts:
    """Number and previous are known when a frame is closed; rows are its kind's builder's."""

    def __init__(self, tenant: str, agent: str, number: int, previous: str) -> None:
        self.tenant = tenant
        self.agent = agent
        self.number = number
        self.previous = previous
        self.rows = 0
        self._extra_bytes = 0
        self._streams: dict[Stream, OpenStream] = {}
        self._by_identity: dict[int, OpenStream] = {}

    @property
    def bytes(self) -> int:
        """About what the frame takes uncompressed, header included."""
        raise NotImplementedError

    def build(self) -> Frame:
        """The frame of what was added."""
        raise NotImplementedError

    @property
    def is_empty(self) -> bool:
        """No row, fence, drop or end: nothing to send."""
        return not self._streams

    @property
    def streams(self) -> tuple[OpenStream, ...]:
        """What it says of each so far, in the order in which they came."""
        return tuple(self._streams.values())

    def fence(self, stream: Stream, next_seq: int, fence: Fence) -> None:
        """All lines of an event hour of the stream; `next_seq` opens a stream without rows here."""
        self._open(stream, next_seq).fences.append(fence)
        self._extra_bytes += 32 + 20 * len(fence.ranges)

    def drop(self, stream: Stream, next_seq: int, drop: Drop) -> None:
        """Lines that were dropped before they got a seq."""
        self._open(stream, next_seq).drops.append(drop)
        self._extra_bytes += 16 + len(drop.reason)

    def manifest(self, stream: Stream, next_seq: int, data: Bytes) -> None:
        """A piece of what the stream's process says of its run (zlib of JSON). Raises TooLarge."""
        if len(data) > MANIFEST_BYTES_MAX:
            raise TooLarge(f"a manifest of {len(data)} bytes, limit {MANIFEST_BYTES_MAX}")
        self._open(stream, next_seq).manifests.append(data)
        self._extra_bytes += 8 + len(data)

    def alive(self, stream: Stream, next_seq: int, ts_ns: int) -> None:
        """The stream's process was seen alive; of several times in a frame the last is kept."""
        entry = self._open(stream, next_seq)
        entry.alive_ns = max(ts_ns, entry.alive_ns or 0)
        self._extra_bytes += 10

    def end(self, stream: Stream, end: StreamEnd) -> None:
        """The stream is closed."""
        self._open(stream, end.end_seq).end = end

    def _at(self, stream: Stream, seq: int) -> OpenStream:
        """The stream, of which this seq is next. Raises ValueError."""
        entry = self._by_identity.get(id(stream)) or self._open(stream, seq)
        if seq != entry.next_seq:
            raise ValueError(f"seq {seq} after {entry.next_seq - 1}: a stream has no holes")
        return entry

    def _open(self, stream: Stream, seq: int) -> OpenStream:
        entry = self._streams.get(stream)
        if entry is None:
            entry = self._streams[stream] = OpenStream(stream, len(self._streams), seq)
            self._extra_bytes += HEADER_ENTRY_BYTES + len(repr(stream))
        self._by_identity[id(entry.stream)] = entry
        return entry

    def _closed_streams(self) -> tuple[FrameStream, ...]:
        return tuple(_close(entry) for entry in self._streams.values())


def _close(entry: OpenStream) -> FrameStream:
    return FrameStream(
        stream=entry.stream,
        first_seq=entry.first_seq,
        rows=entry.next_seq - entry.first_seq,
        fences=tuple(entry.fences),
        drops=tuple(entry.drops),
        end=entry.end,
        manifests=tuple(entry.manifests),
        alive_ns=entry.alive_ns,
    )
