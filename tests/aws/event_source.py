"""Lambda's event source mapping over a Kinesis stream: batches, partial failures, halving, retries.

What AWS documents of it, in the order it applies to a batch:
- a response with batchItemFailures: done below the lowest sequence, the rest comes again;
- an exception with BisectBatchOnFunctionError: the two halves come one after the other;
- a batch is tried MaximumRetryAttempts + 1 times, then its position goes to the destination.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ranklog.limits import PAYLOAD_BYTES_MAX
from ranklog.model.record import Record
from ranklog.stream.kinesis import read_records

Function = Callable[[dict[str, Any]], Any]


@dataclass
class EventSourceMapping:
    """Call `poll` until the stream is read to its end. `given_up`: (first, last) sequences."""

    kinesis: Any
    stream_name: str
    function: Function
    batch_size: int = 100
    retry_attempts_max: int = 5
    delivered: list[tuple[str, str]] = field(default_factory=list)
    given_up: list[tuple[str, str]] = field(default_factory=list)
    _after: dict[str, str] = field(default_factory=dict)

    def poll(self) -> int:
        """Deliver what the shards hold beyond the last poll; returns the number of records."""
        shards: dict[str, list[Record]] = {}
        for shard_id, record in read_records(self.kinesis, self.stream_name, after=self._after):
            shards.setdefault(shard_id, []).append(record)
        for shard_id, records in shards.items():
            for batch in self._batches(shard_id, records):
                self._deliver(shard_id, batch, self.retry_attempts_max)
            self._after[shard_id] = records[-1].sequence
        return sum(len(records) for records in shards.values())

    def _batches(self, shard_id: str, records: Sequence[Record]) -> list[list[Record]]:
        batches: list[list[Record]] = [[]]
        for record in records:
            grown = [*batches[-1], record]
            size = len(json.dumps(lambda_event(self.stream_name, shard_id, grown)))
            if batches[-1] and (len(grown) > self.batch_size or size > PAYLOAD_BYTES_MAX):
                batches.append([record])
            else:
                batches[-1] = grown
        return batches

    def _deliver(self, shard_id: str, batch: Sequence[Record], attempts_left: int) -> None:
        self.delivered.append((batch[0].sequence, batch[-1].sequence))
        try:
            answer = self.function(lambda_event(self.stream_name, shard_id, batch))
        except Exception:
            self._retry_halves(shard_id, batch, attempts_left)
            return
        failed = [item["itemIdentifier"] for item in answer["batchItemFailures"]]
        if failed:
            at = [record.sequence for record in batch].index(min(failed, key=int))
            self._retry(shard_id, batch[at:], attempts_left)

    def _retry_halves(self, shard_id: str, batch: Sequence[Record], attempts_left: int) -> None:
        middle = len(batch) // 2
        for half in (batch[:middle], batch[middle:]):
            if half:
                self._retry(shard_id, half, attempts_left)

    def _retry(self, shard_id: str, batch: Sequence[Record], attempts_left: int) -> None:
        if attempts_left:
            self._deliver(shard_id, batch, attempts_left - 1)
        else:
            self.given_up.append((batch[0].sequence, batch[-1].sequence))


def lambda_event(stream_name: str, shard_id: str, records: Sequence[Record]) -> dict[str, Any]:
    """The event that Lambda makes of a shard's records."""
    return {
        "Records": [
            {
                "kinesis": {
                    "kinesisSchemaVersion": "1.0",
                    "partitionKey": "unused",
                    "sequenceNumber": record.sequence,
                    "data": base64.b64encode(record.data).decode(),
                    "approximateArrivalTimestamp": record.arrival_ns / 1e9,
                },
                "eventSource": "aws:kinesis",
                "eventVersion": "1.0",
                "eventID": f"{shard_id}:{record.sequence}",
                "eventName": "aws:kinesis:record",
                "awsRegion": "eu-central-1",
                "eventSourceARN": f"arn:aws:kinesis:eu-central-1:123456789012:stream/{stream_name}",
            }
            for record in records
        ]
    }
