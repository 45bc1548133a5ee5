"""Gives lines their seq and their place in a frame; says when an hour or a stream is over.

Time never decreases within a stream, so that the lines of an hour are one interval of seq: its
fence. Frames are cut so that even one that does not compress fits a Kinesis record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ranklog import limits
from ranklog.model.frame import (
    INVALID_UTF8,
    LEVEL_INHERITED,
    NO_LF,
    STREAM_RANK,
    TS_INHERITED,
    CallSite,
    Drop,
    Fence,
    StreamEnd,
)
from ranklog.model.levels import ERROR
from ranklog.model.stream import Stream
from ranklog.stream.builder import FrameBuilder
from ranklog.stream.frames import encode_frame, header_hash
from ranklog.stream.partition import partition_key

# A frame is sent when it holds this much uncompressed; a line and its metadata fit on top.
FRAME_TARGET_BYTES = 512 * limits.KIB
# A physical line longer than this is several rows; all but the last say NO_LF.
PIECE_BYTES = 256 * limits.KIB
# Metadata of one line beyond this is left out, so that a frame stays under FRAME_BYTES_MAX.
LINE_METADATA_BYTES_MAX = 64 * limits.KIB
# An hour is fenced this long after its end, for lines that were stamped and not yet written.
FENCE_DELAY_NS = 60 * limits.SECOND_NS
LEVEL_MAX = 32_767

Send = Callable[[str, bytes], None]  # partition key, frame


@dataclass(slots=True)
class StreamState:
    """How far a stream is. `hour` is None until its first line."""

    stream: Stream
    next_seq: int = 0
    last_ts: int = 0
    hour: int | None = None
    hour_first_seq: int = 0
    ended: bool = False


@dataclass(slots=True)
class Row:
    """One physical line, or a record of several. `texts` have no line feed."""

    ts_ns: int
    texts: Sequence[bytes]
    level: int | None = None
    site: CallSite | None = None
    rank: int | None = STREAM_RANK
    iteration: int | None = None
    metadata: dict[str, Any] | None = None
    flags: int = 0
    body_at: int = 0
    group: int | None = None  # seq of a group that this row continues
    starts_group: bool = False  # a group whose other lines come in later rows


@dataclass(slots=True)
class _Open:
    """The frame of a tenant that is being filled, and where its chain is."""

    agent: str
    number: int = 0
    previous: str = ""
    builder: FrameBuilder | None = None
    since_ns: int = 0
    urgent: bool = False
    streams: dict[Stream, StreamState] = field(default_factory=dict)


class Framer:
    """Rows of many streams in, frames out by `send`, in order of their numbers."""

    def __init__(self, agent: str, send: Send) -> None:
        self._agent = agent
        self._send = send
        self._tenants: dict[str, _Open] = {}

    def state(self, stream: Stream) -> StreamState:
        """The stream's state; its first mention opens it at seq 0."""
        streams = self._of(stream.tenant).streams
        if stream not in streams:
            streams[stream] = StreamState(stream)
        return streams[stream]

    def add(self, state: StreamState, row: Row) -> int:
        """Append a row's lines; returns the seq of the first."""
        ts_ns = max(row.ts_ns, state.last_ts)
        self._enter_hour(state, ts_ns)
        state.last_ts = ts_ns
        first = state.next_seq
        grouped = row.starts_group or len(row.texts) > 1
        head = row.group if row.group is not None else first if grouped else None
        flags = row.flags
        metadata = _bounded(row.metadata)
        for text in row.texts:
            for piece, piece_flags in _pieces(text):
                self._append(state, row, ts_ns, piece, flags | piece_flags, head, metadata)
            flags = row.flags | TS_INHERITED | (LEVEL_INHERITED if row.level is not None else 0)
        return first

    def drop(self, state: StreamState, lines: int, reason: str) -> None:
        """Lines that will not come."""
        self._builder(state).drop(state.stream, state.next_seq, Drop(lines, reason))

    def fence_past_hours(self, now_ns: int) -> None:
        """Close the hours that are over, of streams that said nothing since."""
        for tenant in self._tenants.values():
            for state in tenant.streams.values():
                if state.hour is None or state.ended:
                    continue
                end_ns = (state.hour + 1) * limits.HOUR_NS
                if now_ns >= end_ns + FENCE_DELAY_NS:
                    self._fence(state)
                    state.last_ts = max(state.last_ts, end_ns)

    def end(self, state: StreamState, exit_code: int | None) -> None:
        """The stream's last hour is fenced and the stream closed."""
        if state.ended:
            return
        self._fence(state)
        self._builder(state).end(state.stream, StreamEnd(state.next_seq, exit_code))
        state.ended = True

    def cut_due(self, now_ns: int, *, age_ns: int, urgent_age_ns: int) -> None:
        """Send frames that are old enough; one with an error inside is sooner."""
        for tenant, open_ in self._tenants.items():
            age = urgent_age_ns if open_.urgent else age_ns
            if open_.since_ns == 0:
                open_.since_ns = now_ns
            if open_.builder is not None and now_ns - open_.since_ns >= age:
                self._cut(tenant)

    def cut_all(self) -> None:
        """Send whatever there is."""
        for tenant in self._tenants:
            self._cut(tenant)

    @property
    def is_empty(self) -> bool:
        """Nothing waits to be sent."""
        return all(open_.builder is None for open_ in self._tenants.values())

    def _append(
        self,
        state: StreamState,
        row: Row,
        ts_ns: int,
        text: bytes,
        flags: int,
        group: int | None,
        metadata: dict[str, Any] | None,
    ) -> None:
        text, raw = _valid(text)
        self._builder(state).add(
            state.stream,
            state.next_seq,
            ts_ns,
            None if row.level is None else max(0, min(row.level, LEVEL_MAX)),
            row.site,
            text,
            min(row.body_at, len(text)),
            flags | (INVALID_UTF8 if raw is not None else 0),
            group,
            row.rank,
            row.iteration,
            metadata,
            raw,
        )
        state.next_seq += 1
        open_ = self._of(state.stream.tenant)
        if row.level is not None and row.level >= ERROR:
            open_.urgent = True
        if open_.builder is not None and open_.builder.bytes >= FRAME_TARGET_BYTES:
            self._cut(state.stream.tenant)

    def _enter_hour(self, state: StreamState, ts_ns: int) -> None:
        hour = ts_ns // limits.HOUR_NS
        if state.hour is not None and hour > state.hour:
            self._fence(state)
        if state.hour is None:
            state.hour, state.hour_first_seq = hour, state.next_seq

    def _fence(self, state: StreamState) -> None:
        if state.hour is None or state.next_seq == state.hour_first_seq:
            state.hour = None
            return
        fence = Fence(state.hour, ((state.hour_first_seq, state.next_seq),))
        self._builder(state).fence(state.stream, state.next_seq, fence)
        state.hour = None

    def _of(self, tenant: str) -> _Open:
        if tenant not in self._tenants:
            self._tenants[tenant] = _Open(self._agent)
        return self._tenants[tenant]

    def _builder(self, state: StreamState) -> FrameBuilder:
        open_ = self._of(state.stream.tenant)
        if open_.builder is None:
            open_.builder = FrameBuilder(
                state.stream.tenant, open_.agent, open_.number, open_.previous
            )
            open_.since_ns = 0
        return open_.builder

    def _cut(self, tenant: str) -> None:
        open_ = self._tenants[tenant]
        if open_.builder is None:
            return
        frame = open_.builder.build()
        open_.builder, open_.urgent = None, False
        open_.number += 1
        open_.previous = header_hash(frame)
        first = frame.streams[0].stream
        self._send(partition_key(tenant, first.run, first.host), encode_frame(frame))


def _pieces(text: bytes) -> list[tuple[bytes, int]]:
    """The text, or pieces of it cut between characters, with the flags each needs."""
    if len(text) <= PIECE_BYTES:
        return [(text, 0)]
    pieces = []
    while len(text) > PIECE_BYTES:
        at = character_start(text, PIECE_BYTES)
        pieces.append((text[:at], NO_LF))
        text = text[at:]
    return [*pieces, (text, 0)]


def character_start(text: bytes, at: int) -> int:
    """The last offset up to `at` that does not lie within a UTF-8 character."""
    for back in range(4):
        if text[at - back] & 0xC0 != 0x80:
            return at - back
    return at


def _valid(text: bytes) -> tuple[bytes, bytes | None]:
    """Valid UTF-8 as it is; else with U+FFFD in place of what isn't, and the bytes."""
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return text.decode("utf-8", "replace").encode(), text
    return text, None


def _bounded(metadata: dict[str, Any] | None) -> dict[str, Any] | None:
    if metadata is None or len(metadata) <= 16:
        return metadata
    kept, size = {}, 0
    for key, value in metadata.items():
        size += 16 + 4 * len(key) + (4 * len(value) if isinstance(value, str) else 8)
        if size > LINE_METADATA_BYTES_MAX:
            break
        kept[key] = value
    return kept
