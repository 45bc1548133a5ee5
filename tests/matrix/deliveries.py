"""What an event source mapping does to a batch: once, again, halved, late, beside itself.

When a record arrived is fixed when it is first read, as Kinesis fixes it: who gets it again gets the same.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from ranklog.model.record import Record
from ranklog.model.stream import Stream
from ranklog.stream.frames import decode_frame
from ranklog.stream.kinesis import read_records
from tests.matrix.actors import Site
from tests.matrix.truth import CHANNEL, TELEMETRY, Truth

BATCH_MAX = 5
AGAIN = 0.15  # of what was done, so much comes once more


@dataclass(frozen=True, slots=True)
class Delivery:
    """Records of one shard, in order. `attempt`: how often they were tried before."""

    shard: str
    records: tuple[Record, ...]
    attempt: int = 0

    def again(self) -> Delivery:
        return replace(self, attempt=self.attempt + 1)

    def halves(self) -> list[Delivery]:
        """As BisectBatchOnFunctionError makes two of it."""
        middle = len(self.records) // 2
        parts = (self.records[:middle], self.records[middle:])
        return [Delivery(self.shard, part, self.attempt + 1) for part in parts if part]


@dataclass(slots=True)
class Deliveries:
    """`waiting` are to be tried; `past` are done, and may be replayed."""

    site: Site
    truth: Truth
    rng: random.Random
    waiting: list[Delivery] = field(default_factory=list)
    past: list[Delivery] = field(default_factory=list)
    _after: dict[str, str] = field(default_factory=dict)

    def poll(self) -> int:
        """Cut into batches what the stream got since the last look; how many records."""
        clock, found = self.site.machine.clock, dict[str, list[Record]]()
        for shard, record in read_records(
            self.site.machine.sure_kinesis,
            self.site.stream_name,
            after=self._after,
            sleep=lambda _: None,
        ):
            found.setdefault(shard, []).append(replace(record, arrival_ns=clock()))
        for shard, records in found.items():
            self._after[shard] = records[-1].sequence
            while records:
                size = self.rng.randint(1, BATCH_MAX)
                self.waiting.append(Delivery(shard, tuple(records[:size])))
                records = records[size:]
        return sum(map(len, found.values()))

    def take(self, most: int, *, first: bool = False) -> list[Delivery]:
        """Some of what waits, often the oldest (`first`: always), sometimes any: shards are read beside one
        another."""
        taken: list[Delivery] = []
        while self.waiting and len(taken) < most:
            at = 0 if first or self.rng.random() < 0.5 else self.rng.randrange(len(self.waiting))
            taken.append(self.waiting.pop(at))
        return taken

    def joined(self) -> list[Delivery]:
        """What was done so far, once more and together: as from a shard whose place nobody had noted."""
        found: dict[str, tuple[Record, ...]] = {}
        for delivery in self.past:
            found[delivery.shard] = (*found.get(delivery.shard, ()), *delivery.records)
        return [Delivery(shard, records, 1) for shard, records in found.items() if records[1:]]

    def done(self, delivery: Delivery, stored: Iterable[Record]) -> None:
        """It was acknowledged: lines of these of its records are stored for sure."""
        self.store(stored)
        self.past.append(delivery)
        if self.rng.random() < AGAIN:
            self.waiting.append(delivery.again())

    def store(self, records: Iterable[Record]) -> None:
        """What these frames hold is there for everybody."""
        for stream, first, end in rows_of(records):
            if stream.rank is None:
                continue
            name = (stream.run, stream.rank)
            if stream.channel == CHANNEL:
                self.truth.store(name, stream.stream_id, first, end)
            elif stream.channel == TELEMETRY:
                self.truth.store_points(name, first, end)

    def failed(self, delivery: Delivery) -> None:
        """It comes again, whole or in halves."""
        halved = len(delivery.records) > 1 and self.rng.random() < 0.5
        again = delivery.halves() if halved else [delivery.again()]
        self.waiting[:0] = again

    def replay(self, count: int, *, oldest: bool = False) -> None:
        """Old batches come once more, as they were or in other pieces; the oldest is one of them where so
        asked."""
        chosen = self.rng.sample(self.past, min(count, len(self.past)))
        for delivery in chosen + self.past[: int(oldest)]:
            parts = delivery.halves() if self.rng.random() < 0.5 else [delivery.again()]
            self.waiting += parts


def rows_of(records: Iterable[Record]) -> list[tuple[Stream, int, int]]:
    """(stream, first seq, end seq) of what frames hold."""
    return [
        (entry.stream, entry.first_seq, entry.first_seq + entry.rows)
        for record in records
        for entry in decode_frame(record.data).streams
        if entry.rows
    ]
