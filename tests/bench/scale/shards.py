"""Producers and their shards: frames by age and size as an agent cuts them, hosts by the hash of their
partition key as Kinesis spreads them, shards as an on-demand stream grows them.

A host's frames have one key, so that they stay in order, and one key is never on two shards.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

from ranklog.agent.collector import FRAME_AGE_NS
from ranklog.agent.framer import FRAME_TARGET_BYTES
from ranklog.stream.columns import ROW_BYTES
from ranklog.stream.partition import partition_key
from tests.bench.scale.aws import limit
from tests.bench.scale.rates import Rates

FRAME_AGE_S = FRAME_AGE_NS / 1e9
SHARDS_MIN = 4
# An on-demand stream keeps room for twice its peak.
ROOM = 2.0
# A shard that is fuller than this is split, where it has more than one host.
HOT = 0.8
_KEYS = 2**128
_KIB = 1_024


@dataclass(frozen=True, slots=True)
class Producers:
    """Hosts that log at one pace. `bytes_per_s`: text of all."""

    hosts: int
    bytes_per_s: float
    tenants: int = 1


@dataclass(frozen=True, slots=True)
class Frames:
    """What each host sends: `lines` and `wire_bytes` of a frame, frames a second."""

    lines: float
    wire_bytes: float
    per_s: float

    @property
    def billed_bytes(self) -> float:
        """Kinesis rounds each record up to the next KiB: of sizes spread evenly, half a one in the mean."""
        return max(_KIB, self.wire_bytes + _KIB / 2)


@dataclass(frozen=True, slots=True)
class Shard:
    """How many hosts send to it, and of how many tenants."""

    hosts: int
    tenants: int


def frames_of(producers: Producers, rates: Rates) -> Frames:
    """Frames are cut a second after their first line, or at 512 KiB before compression."""
    lines_per_s = producers.bytes_per_s / producers.hosts / rates.line_bytes
    lines = min(lines_per_s * FRAME_AGE_S, FRAME_TARGET_BYTES / (ROW_BYTES + rates.line_bytes))
    lines = max(1.0, lines)
    return Frames(lines, lines * rates.wire.at(lines), lines_per_s / lines)


def load_of(frames: Frames) -> float:
    """The share of a shard that one host fills: by bytes or by records, whichever is more."""
    by_bytes = frames.per_s * frames.wire_bytes / limit("shard in")
    return max(by_bytes, frames.per_s / limit("shard records"))


def spread(
    producers: Producers, frames: Frames, *, room: float = ROOM, least: int = SHARDS_MIN
) -> list[Shard]:
    """The stream's shards once it has grown: even parts of the keys, hot ones split in the middle of
    theirs. Shards that no host falls on are there, too."""
    share = load_of(frames)
    count = max(least, math.ceil(room * share * producers.hosts))
    places = sorted(_places(producers))
    found: list[Shard] = []
    at = 0
    for number in range(count):
        end = (number + 1) * _KEYS // count
        upto = at
        while upto < len(places) and places[upto][0] < end:
            upto += 1
        found += _split(places[at:upto], number * _KEYS // count, end, share)
        at = upto
    return found


def _places(producers: Producers) -> list[tuple[int, int]]:
    """(place among the keys, tenant) of each host."""
    found = []
    for host in range(producers.hosts):
        tenant = host % producers.tenants
        key = partition_key(f"tenant-{tenant}", f"run-{host // 64}", f"node-{host:06d}")
        found.append((int.from_bytes(hashlib.md5(key.encode()).digest(), "big"), tenant))
    return found


def _split(
    places: Sequence[tuple[int, int]], start: int, end: int, share: float, depth: int = 0
) -> list[Shard]:
    if len(places) <= 1 or share * len(places) <= HOT or depth == 16:
        return [Shard(len(places), len({tenant for _, tenant in places}))]
    middle = (start + end) // 2
    low = [place for place in places if place[0] < middle]
    high = [place for place in places if place[0] >= middle]
    return [
        *_split(low, start, middle, share, depth + 1),
        *_split(high, middle, end, share, depth + 1),
    ]


def ramp_s(peak_bytes_per_s: float) -> float:
    """Seconds until a new on-demand stream takes that much: from 4 MB/s it doubles every quarter hour."""
    doublings = math.log2(max(1.0, peak_bytes_per_s / limit("stream on demand, new")))
    return math.ceil(doublings) * limit("stream doubles in")
