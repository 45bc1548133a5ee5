"""Lambda's event source mapping over a Kinesis stream, in time: polls, windows, retries, destinations.

What AWS documents of it:
- a shard is polled once a second, and at once while there is more;
- a batch goes out when it is full, at 6 MB, or when its window, which the first record opens, is over;
- a response with batchItemFailures: done below the lowest sequence number, the rest comes again;
- an error with BisectBatchOnFunctionError: two halves, one after the other, which uses up no retry;
- a batch is given up after MaximumRetryAttempts more tries, or when it is older than
  MaximumRecordAgeInSeconds (-1: never); its position goes to the destination, to S3 with its records;
- a throttled invocation is repeated and is no try.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from ranklog.model.record import Record
from ranklog.stream.kinesis import read_records
from tests.artefacts.lambdas import Throttled
from tests.artefacts.worker import Invoked
from tests.aws.event_source import lambda_event
from tests.aws.lambda_client import PAYLOAD_BYTES_MAX

Invoke = Callable[[bytes], Invoked]
Watch = Callable[[list[Record]], None]
# Of one try after another; Lambda's own waits are longer.
_WAIT_S, _WAIT_S_MAX = 0.1, 2.0


@dataclass(frozen=True, slots=True)
class Terms:
    """A mapping's properties, in the template's words."""

    batch_size: int = 100
    window_s: float = 0.0
    retries: int = -1
    record_age_s: float = -1
    bisect: bool = False
    partial: bool = False
    destination: str = ""

    @classmethod
    def read(cls, properties: Mapping[str, Any]) -> Terms:
        """Of a function's event of type Kinesis."""
        on_failure = properties.get("DestinationConfig", {}).get("OnFailure", {})
        return cls(
            batch_size=int(properties.get("BatchSize", 100)),
            window_s=float(properties.get("MaximumBatchingWindowInSeconds", 0)),
            retries=int(properties.get("MaximumRetryAttempts", -1)),
            record_age_s=float(properties.get("MaximumRecordAgeInSeconds", -1)),
            bisect=str(properties.get("BisectBatchOnFunctionError", False)).lower() == "true",
            partial="ReportBatchItemFailures" in properties.get("FunctionResponseTypes", ()),
            destination=str(on_failure.get("Destination", "")),
        )


@dataclass(frozen=True, slots=True)
class GivenUp:
    """A batch that was tried long enough. `record` is what a destination in S3 gets of it."""

    first: str
    last: str
    condition: str
    record: dict[str, Any]


@dataclass
class KinesisMapping:
    """Polls from `start` to `close`, a thread a shard; `deliver` alone needs neither.

    `delivered` has (first, last, error) of each try, in order. `on_read`, `on_out`, `on_done` are called with
    what a poll has read, what goes to the function now, and what it has taken or was given up.
    """

    kinesis: Any
    stream_name: str
    invoke: Invoke
    terms: Terms
    on_failure: Callable[[GivenUp], None] = lambda _: None
    on_read: Watch = lambda _: None
    on_out: Watch = lambda _: None
    on_done: Watch = lambda _: None
    poll_s: float = 1.0
    delivered: list[tuple[str, str, str]] = field(default_factory=list)
    given_up: list[GivenUp] = field(default_factory=list)
    _closed: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)
    _errors: list[BaseException] = field(default_factory=list)

    def start(self) -> None:
        """Poll all shards there are, from their beginning."""
        pages = self.kinesis.get_paginator("list_shards").paginate(StreamName=self.stream_name)
        for shard_id in [shard["ShardId"] for page in pages for shard in page["Shards"]]:
            thread = threading.Thread(target=self._run, args=(shard_id,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def close(self) -> None:
        """After the batch that is under way. Raises what a poller died of."""
        self._closed.set()
        for thread in self._threads:
            thread.join()
        if self._errors:
            raise self._errors[0]

    def _run(self, shard_id: str) -> None:
        try:
            self._poll(shard_id)
        except BaseException as error:
            self._errors.append(error)

    def _poll(self, shard_id: str) -> None:
        after: dict[str, str] = {}
        pending: list[Record] = []
        polled_s, window_ends_s = -self.poll_s, float("inf")
        while not self._closed.is_set():
            now_s = time.monotonic()
            if now_s >= polled_s + self.poll_s:
                polled_s = now_s
                fresh = self._read(shard_id, after)
                self.on_read(fresh)
                if fresh and not pending:
                    window_ends_s = now_s + self.terms.window_s
                pending += fresh
            for batch in self._full(shard_id, pending, over=time.monotonic() >= window_ends_s):
                self.on_out(batch)
                self.deliver(shard_id, batch)
                self.on_done(batch)
                pending = pending[len(batch) :]
                window_ends_s = time.monotonic() + self.terms.window_s if pending else float("inf")
            next_s = min(polled_s + self.poll_s, window_ends_s)
            self._closed.wait(max(0.0, next_s - time.monotonic()))

    def _read(self, shard_id: str, after: dict[str, str]) -> list[Record]:
        """What one shard holds behind the last read."""
        found = [
            record
            for of_shard, record in read_records(
                _OneShard(self.kinesis, shard_id), self.stream_name, after=after
            )
            if of_shard == shard_id
        ]
        if found:
            after[shard_id] = found[-1].sequence
        return found

    def _full(self, shard_id: str, records: Sequence[Record], *, over: bool) -> list[list[Record]]:
        """The batches that go out now: full ones, and the rest where the window is over."""
        batches: list[list[Record]] = []
        at = 0
        while at < len(records):
            taken = self._fitting(shard_id, records[at : at + self.terms.batch_size])
            if at + taken == len(records) and taken < self.terms.batch_size and not over:
                break
            batches.append(list(records[at : at + taken]))
            at += taken
        return batches

    def _fitting(self, shard_id: str, records: Sequence[Record]) -> int:
        """How many of the first records an event holds."""
        size = len(_event(self.stream_name, shard_id, ()))
        for count, record in enumerate(records):
            size += len(_event(self.stream_name, shard_id, (record,)))
            if size > PAYLOAD_BYTES_MAX and count:
                return count
        return len(records)

    def deliver(self, shard_id: str, batch: Sequence[Record]) -> None:
        """Until all of it is taken or given up, or the mapping is closed."""
        left: list[tuple[Sequence[Record], int]] = [(batch, 0)]
        while left and not self._closed.is_set():
            records, tries = left.pop()
            records = self._young(shard_id, records)
            if not records:
                continue
            done = self._invoke(_event(self.stream_name, shard_id, records))
            if done is None:
                return
            error, rest = self._judge(done, records)
            self.delivered.append((records[0].sequence, records[-1].sequence, error))
            if not rest:
                continue
            if error and self.terms.bisect and len(records) > 1:
                middle = len(records) // 2
                left += [(records[middle:], tries), (records[:middle], tries)]
            elif 0 <= self.terms.retries <= tries:
                self._give_up(shard_id, rest, "RetryAttemptsExhausted", done)
                continue
            else:
                left.append((rest, tries + 1))
            self._closed.wait(min(_WAIT_S * 2 ** min(tries, 9), _WAIT_S_MAX))

    def _young(self, shard_id: str, records: Sequence[Record]) -> Sequence[Record]:
        """Those that are not too old; the others are given up."""
        if self.terms.record_age_s < 0:
            return records
        oldest_ns = time.time_ns() - int(self.terms.record_age_s * 1e9)
        old = [record for record in records if record.arrival_ns < oldest_ns]
        if old:
            self._give_up(shard_id, old, "RecordAgeExceeded", None)
        return records[len(old) :]

    def _invoke(self, event: bytes) -> Invoked | None:
        """What came of it; throttled calls are repeated. None: closed meanwhile."""
        wait_s = _WAIT_S
        while not self._closed.is_set():
            try:
                return self.invoke(event)
            except Throttled:
                self._closed.wait(wait_s)
                wait_s = min(2 * wait_s, _WAIT_S_MAX)
        return None

    def _judge(self, done: Invoked, records: Sequence[Record]) -> tuple[str, Sequence[Record]]:
        """The error there was, and what comes again."""
        if done.error:
            return str(json.loads(done.payload).get("errorType", done.error)), records
        if not self.terms.partial:
            return "", ()
        try:
            failed = [
                item["itemIdentifier"] for item in json.loads(done.payload)["batchItemFailures"]
            ]
            at = (
                [record.sequence for record in records].index(min(failed, key=int))
                if failed
                else None
            )
        except (KeyError, TypeError, ValueError):
            return (
                "",
                records,
            )  # a response that can't be read, or names another batch's: all of it failed
        return "", () if at is None else records[at:]

    def _give_up(
        self, shard_id: str, records: Sequence[Record], condition: str, done: Invoked | None
    ) -> None:
        record = {
            "requestContext": {"requestId": str(uuid.uuid4()), "condition": condition},
            "responseContext": None if done is None else {"functionError": done.error or None},
            "version": "1.0",
            "timestamp": datetime.now(timezone.utc).isoformat(),
            "KinesisBatchInfo": {
                "shardId": shard_id,
                "startSequenceNumber": records[0].sequence,
                "endSequenceNumber": records[-1].sequence,
                "batchSize": len(records),
                "streamArn": f"arn:aws:kinesis:eu-central-1:123456789012:stream/{self.stream_name}",
            },
            "payload": _event(self.stream_name, shard_id, records).decode(),
        }
        lost = GivenUp(records[0].sequence, records[-1].sequence, condition, record)
        self.given_up.append(lost)
        self.on_failure(lost)


def _event(stream_name: str, shard_id: str, records: Sequence[Record]) -> bytes:
    return json.dumps(lambda_event(stream_name, shard_id, records)).encode()


class _OneShard:
    """A client of Kinesis that knows one shard."""

    def __init__(self, kinesis: Any, shard_id: str) -> None:
        self._shard_id = shard_id
        self.get_shard_iterator = kinesis.get_shard_iterator
        self.get_records = kinesis.get_records

    def get_paginator(self, _: str) -> _OneShard:
        return self

    def paginate(self, **_: Any) -> list[dict[str, Any]]:
        return [{"Shards": [{"ShardId": self._shard_id}]}]
