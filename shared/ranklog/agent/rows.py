"""Streams as the agent knows them, and single rows on their way into a frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ranklog.model.frame import STREAM_RANK, CallSite
from ranklog.model.stream import Stream

# Classes of frames, in the order in which a full spool misses them least.
BULK, TELEMETRY, KEPT = 0, 1, 2


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
    klass: int = BULK  # of its lines from now until the cut

    def saved(self) -> list[Any]:
        """For the log of the agent."""
        return [
            self.next_seq,
            self.last_ts,
            self.hour,
            self.hour_first_seq,
            self.ended,
            self.masked,
        ]

    def restore(self, saved: Sequence[Any]) -> None:
        """Go on from there."""
        self.next_seq, self.last_ts, self.hour, self.hour_first_seq, self.ended = saved[:5]
        self.masked = saved[5]


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
