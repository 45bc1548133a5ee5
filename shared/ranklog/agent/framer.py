"""Gives lines their seq and their place in a frame; says when an hour or a stream is over.

Time never decreases within a stream, so that the lines of an hour are one interval of seq: its
fence. Frames are cut so that even one that does not compress fits a Kinesis record.

A frame is of one class, so that a full spool can drop the frames it misses least. From its first
warning on, a stream's lines go with the class of warnings until the frames are cut: within a cut a
stream has one run of lines in a frame, and what led up to a warning's successors stays with it. So do
those of a stream that says more than a usual one may: it has frames of its own, which are sent beside
the others' and not before them.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from ranklog import limits
from ranklog.agent.pieces import bounded, pieces_of, valid_text
from ranklog.agent.rows import BULK, FLOOD, KEPT, TELEMETRY, Row, StreamState
from ranklog.agent.siblings import Siblings
from ranklog.agent.wal_segment import WalFrame
from ranklog.model.frame import INVALID_UTF8, LEVEL_INHERITED, TS_INHERITED, Drop, Fence, StreamEnd
from ranklog.model.levels import ERROR, WARNING
from ranklog.stream.builder import FrameBuilder
from ranklog.stream.frame_parts import FrameParts
from ranklog.stream.frames import encode_frame, encoded_hash
from ranklog.stream.partition import partition_key
from ranklog.stream.point_batch import PointBatch
from ranklog.stream.point_builder import PointBuilder
from ranklog.stream.row_batch import RowBatch

# A frame is closed when it holds this much uncompressed; a line and its metadata fit on top.
FRAME_TARGET_BYTES = 512 * limits.KIB
# … of a flood sooner: while one is under way, nobody else's is.
FLOOD_TARGET_BYTES = 128 * limits.KIB
# Lines of a batch that go into a frame at once, between two looks at its size.
BATCH_ROWS, BATCH_BYTES = 1_024, 128 * limits.KIB
# Values of a batch that go into a frame at once.
BATCH_VALUES = 8_192
# An hour is fenced this long after its end, for lines that were stamped and not yet written.
FENCE_DELAY_NS = 60 * limits.SECOND_NS
LEVEL_MAX = 32_767
# Shards of Kinesis that a flood's frames are spread over, as far as there are so many.
FLOOD_PARTS = 8
# Of every stream, so many first lines are of the class that is kept longest.
HEAD_LINES = 10_000
TELEMETRY_CHANNEL = "telemetry"


@dataclass(slots=True)
class _Chain:
    """The frames of a tenant: those that are being filled, by class and whether of points, and the last
    that was closed."""

    number: int = 0
    previous: str = ""
    open: dict[tuple[int, bool], FrameParts] = field(default_factory=dict)


class Framer:
    """Rows of many streams in, frames out by `cut`, in order of their numbers."""

    def __init__(self, agent: str, chains: dict[str, Sequence[Any]] | None = None) -> None:
        """`chains`: tenant -> number and previous of its next frame, as `cut` gave them."""
        self.agent = agent
        self._chains = {tenant: _Chain(*saved) for tenant, saved in (chains or {}).items()}
        self._closed: list[WalFrame] = []
        self._touched: dict[int, StreamState] = {}
        self._siblings = Siblings()
        self._since_ns: int | None = None
        self._urgent = False

    def add(self, state: StreamState, row: Row) -> int:
        """Append a row's lines; returns the seq of the first."""
        ts_ns = max(row.ts_ns, state.last_ts)
        self._enter_hour(state, ts_ns)
        state.last_ts = ts_ns
        first = state.next_seq
        grouped = row.starts_group or len(row.texts) > 1
        head = row.group if row.group is not None else first if grouped else None
        flags = row.flags
        metadata = bounded(row.metadata)
        self._note_level(state, row.level or 0)
        for text in row.texts:
            for piece, piece_flags in pieces_of(text):
                self._append(state, row, ts_ns, piece, flags | piece_flags, head, metadata)
            flags = row.flags | TS_INHERITED | (LEVEL_INHERITED if row.level is not None else 0)
        return first

    def add_batch(self, state: StreamState, batch: RowBatch) -> None:
        """Append lines that are records of their own, none longer than PIECE_BYTES."""
        batch.ts = _ascending(batch.ts, state.last_ts)
        for start, end in self._hours(state, batch.ts):
            self._extend_hour(state, batch if end - start == len(batch) else batch[start:end])

    def add_points(self, state: StreamState, batch: PointBatch) -> None:
        """Append records of telemetry."""
        batch.ts = _ascending(batch.ts, state.last_ts)
        for start, end in self._hours(state, batch.ts):
            of_hour = batch if end - start == len(batch) else batch[start:end]
            for part in of_hour.parts(BATCH_VALUES):
                builder = self._builder(state)
                assert isinstance(builder, PointBuilder)
                held = builder.bytes
                builder.extend(state.stream, state.next_seq, part)
                state.next_seq += len(part)
                state.last_ts = part.ts[-1]
                self._spend(state, builder.bytes - held)
                self._close_if_full(state, builder)

    def drop(self, state: StreamState, lines: int, reason: str) -> None:
        """Lines that will not come."""
        self._builder(state).drop(state.stream, state.next_seq, Drop(lines, reason))

    def beat(self, state: StreamState, now_ns: int) -> None:
        """The stream's process is alive, also where it says nothing."""
        self._builder(state).alive(state.stream, state.next_seq, now_ns)

    def manifest(self, state: StreamState, data: bytes) -> None:
        """A piece of what the stream's process says of its run."""
        self._builder(state, KEPT).manifest(state.stream, state.next_seq, data)

    def fence_past_hours(self, states: Sequence[StreamState], now_ns: int) -> None:
        """Close the hours that are over, of streams that said nothing since."""
        for state in states:
            self._siblings.restored(state)
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
        self._builder(state, KEPT).end(state.stream, StreamEnd(state.next_seq, exit_code))
        state.ended = True
        self._siblings.ended(state)

    # --- cutting --------------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        """Nothing waits to be cut."""
        return not self._closed and not any(chain.open for chain in self._chains.values())

    @property
    def is_full(self) -> bool:
        """A frame was closed for its size."""
        return bool(self._closed)

    def is_due(self, now_ns: int, *, age_ns: int, urgent_age_ns: int) -> bool:
        """What waits is old enough to be cut; with an error inside it is so sooner."""
        if self.is_empty:
            self._since_ns = None
            return False
        if self._since_ns is None:
            self._since_ns = now_ns
        return now_ns - self._since_ns >= (urgent_age_ns if self._urgent else age_ns)

    def cut(self) -> tuple[list[WalFrame], dict[str, list[Any]]]:
        """Close all frames and give them away, with each tenant's next number and previous hash."""
        for tenant, chain in self._chains.items():
            for klass, points in sorted(chain.open, reverse=True):
                self._close(tenant, klass, points)
        frames, self._closed = self._closed, []
        self._siblings.forget()
        for state in self._touched.values():
            state.klass = FLOOD if state.is_flood() else BULK
        self._touched.clear()
        self._since_ns, self._urgent = None, False
        return frames, {t: [chain.number, chain.previous] for t, chain in self._chains.items()}

    # --- within ---------------------------------------------------------------------------------

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
        text, raw = valid_text(text)
        builder = self._lines(state)
        held = builder.bytes
        builder.add(
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
        self._spend(state, builder.bytes - held)
        self._close_if_full(state, builder)

    def _extend_hour(self, state: StreamState, batch: RowBatch) -> None:
        """Lines of one hour; from the first warning on they are of the class that is kept."""
        highest = max(batch.level)
        if highest >= WARNING and state.klass != KEPT and state.next_seq >= HEAD_LINES:
            at = next(i for i, level in enumerate(batch.level) if level >= WARNING)
            if at:
                self._extend(state, batch[:at])
                batch = batch[at:]
        self._note_level(state, highest)
        self._extend(state, batch)

    def _extend(self, state: StreamState, batch: RowBatch) -> None:
        state.last_ts = batch.ts[-1]
        for part in batch.parts(BATCH_ROWS):
            builder = self._lines(state)
            held = builder.bytes
            builder.extend(state.stream, state.next_seq, part)
            state.next_seq += len(part)
            self._spend(state, builder.bytes - held)
            self._close_if_full(state, builder)

    def _hours(self, state: StreamState, ts: array[int]) -> Iterator[tuple[int, int]]:
        """Runs of times that lie in one hour, which the stream enters."""
        start = 0
        while start < len(ts):
            self._enter_hour(state, ts[start])
            assert state.hour is not None
            end = bisect_left(ts, (state.hour + 1) * limits.HOUR_NS, start)
            yield start, end
            start = end

    def _note_level(self, state: StreamState, level: int) -> None:
        if level >= WARNING:
            state.klass = KEPT  # `_builder` remembers to undo it
        if level >= ERROR:
            self._urgent = True

    def _spend(self, state: StreamState, bytes_: int) -> None:
        state.spend(bytes_)
        if state.klass == FLOOD:
            self._touched[id(state)] = state

    def _close_if_full(self, state: StreamState, builder: FrameParts) -> None:
        target = FLOOD_TARGET_BYTES if state.klass == FLOOD else FRAME_TARGET_BYTES
        if builder.bytes >= target:
            tenant = state.stream.tenant
            open_ = self._chains[tenant].open
            self._close(tenant, *next(key for key, one in open_.items() if one is builder))

    def _enter_hour(self, state: StreamState, ts_ns: int) -> None:
        hour = ts_ns // limits.HOUR_NS
        if state.hour is not None and hour > state.hour:
            self._fence(state)
        if state.hour is None:
            state.hour, state.hour_first_seq = hour, state.next_seq
            self._siblings.entered(state, hour)

    def _fence(self, state: StreamState) -> None:
        if state.hour is None or state.next_seq == state.hour_first_seq:
            state.hour = None
            return
        fence = Fence(state.hour, ((state.hour_first_seq, state.next_seq),))
        self._builder(state).fence(state.stream, state.next_seq, fence)
        state.hour = None

    def _lines(self, state: StreamState) -> FrameBuilder:
        builder = self._builder(state)
        assert isinstance(builder, FrameBuilder)
        return builder

    def _builder(self, state: StreamState, klass: int | None = None) -> FrameParts:
        """The frame that the stream's next line or record goes into, or one of a class."""
        if klass is None:
            klass = KEPT if state.next_seq < HEAD_LINES else state.klass
            if state.points:
                klass = FLOOD if state.klass == FLOOD else TELEMETRY
        if klass == KEPT:
            # Until the cut: a second run of its lines in one frame would leave a hole before it.
            state.klass = KEPT
            self._touched[id(state)] = state
        tenant = state.stream.tenant
        chain = self._chains.get(tenant)
        if chain is None:
            chain = self._chains[tenant] = _Chain()
        builder = chain.open.get((klass, state.points))
        if builder is None:
            # Its number and what it follows are known when it is closed.
            kind = PointBuilder if state.points else FrameBuilder
            builder = chain.open[klass, state.points] = kind(tenant, self.agent, 0, "")
        return builder

    def _close(self, tenant: str, klass: int, points: bool) -> None:
        chain = self._chains[tenant]
        builder = chain.open.pop((klass, points))
        self._siblings.tell(builder)
        builder.number, builder.previous = chain.number, chain.previous
        frame = builder.build()
        data = encode_frame(frame)
        chain.number += 1
        chain.previous = encoded_hash(data)
        first = frame.streams[0].stream
        # a flood is no shard's alone
        part = frame.number % FLOOD_PARTS if klass == FLOOD else None
        key = partition_key(tenant, first.run, first.host, part)
        self._closed.append(WalFrame(klass, key, data))


def _ascending(ts: array[int], last: int) -> array[int]:
    """Times of a stream, none before the one before it."""
    if len(ts) and (ts[0] < last or list(ts) != sorted(ts)):
        return array("q", accumulate(ts, max, initial=last))[1:]
    return ts
