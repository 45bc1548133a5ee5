"""What a stream carries for one frame: its bytes, when they arrived, and where in the stream."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a Kinesis shard or of a disk stream. `sequence` orders the records of its source."""

    data: bytes
    arrival_ns: int
    sequence: str
