"""Streams as the agent knows them, and single rows on their way into a frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ranklog.model.frame import STREAM_RANK, CallSite
from ranklog.model.stream import Stream

# Classes of frames. A full spool misses those of a flood least, then the others as they stand here.
BULK, TELEMETRY, KEPT, FLOOD = 0, 1, 2, 3
# A stream that says more than this for long, or this much at once, is a flood: 200 times a usual rank.
# Its lines go in frames of their own, so that nobody else's wait behind them.
FLOOD_BYTES_PER_S, FLOOD_BYTES = 128 << 10, 512 << 10


# Of so many of the last hours that have lines an agent knows after a restart.
SPOKEN_HOURS = 4


@dataclass(slots=True)
class StreamState:
    """How far a stream is. `hour` is None until its first line. `points`: it holds no lines but records
    of telemetry, and goes in frames of their own."""

    stream: Stream
    points: bool = field(default=False, kw_only=True)
    next_seq: int = 0
    last_ts: int = 0
    hour: int | None = None
    hour_first_seq: int = 0
    ended: bool = False
    masked: int = 0  # lines that held secrets
    spoken: list[tuple[int, int]] = field(default_factory=list)  # last hours with lines, first seqs
    klass: int = BULK  # of its lines from now until the cut
    room: float = FLOOD_BYTES  # bytes that it may say before it is a flood
    room_ns: int = 0  # when that was worked out, by the times of its lines

    def spend(self, bytes_: int) -> None:
        """So much was said, up to `last_ts`: beyond its room a stream is a flood, at least until the cut."""
        gained = (self.last_ts - self.room_ns) * FLOOD_BYTES_PER_S / 1e9
        self.room = min(FLOOD_BYTES, self.room + gained) - bytes_
        self.room_ns = self.last_ts
        if self.room < 0 and self.klass == BULK:
            self.klass = FLOOD

    def is_flood(self) -> bool:
        """Whether it stays one: it has not made good for half of what it may say at once."""
        return self.klass == FLOOD and self.room < FLOOD_BYTES / 2

    def saved(self) -> list[Any]:
        """For the log of the agent."""
        return [
            self.next_seq,
            self.last_ts,
            self.hour,
            self.hour_first_seq,
            self.ended,
            self.masked,
            [list(one) for one in self.spoken],
        ]

    def restore(self, saved: Sequence[Any]) -> None:
        """Go on from there."""
        self.next_seq, self.last_ts, self.hour, self.hour_first_seq, self.ended = saved[:5]
        self.masked = saved[5]
        # agents of before did not say
        self.spoken = [(hour, first) for hour, first in saved[6]] if saved[6:] else []


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
