"""Frames into a Kinesis stream and out of it. At least once: what reads them drops duplicates.

Sending takes a boto3 client of Kinesis (`store.aws.aws_client("kinesis")`), so that boto3 is
imported by those who have one.
"""

from __future__ import annotations

import base64
import binascii
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ranklog.errors import BadInput
from ranklog.limits import (
    KINESIS_ATTEMPTS_MAX,
    KINESIS_CALL_BYTES_MAX,
    KINESIS_CALL_RECORDS_MAX,
    KINESIS_RECORD_BYTES_MAX,
    KINESIS_WAIT_S_MAX,
)
from ranklog.model.record import Record
from ranklog.store.aws import translate

_WAIT_S = 0.1
_READ_RECORDS = 1_000
TOO_LARGE = "too_large"


@dataclass(frozen=True, slots=True)
class PutOutcome:
    """What became of one frame. `sequence` is "" and `reason` says why where it is not stored."""

    sequence: str
    reason: str = ""

    @property
    def accepted(self) -> bool:
        """Kinesis has it."""
        return bool(self.sequence)


def put_frames(
    client: Any,
    stream_name: str,
    frames: Sequence[tuple[str, bytes]],
    *,
    attempts: int = KINESIS_ATTEMPTS_MAX,
    sleep: Callable[[float], None] = time.sleep,
) -> list[PutOutcome]:
    """Put (partition key, frame) pairs; one outcome per frame, in order.

    What Kinesis refuses for now is put again after a wait drawn from [0, 0.1 s · 2^attempt), so
    that producers that were throttled together don't come back together. A frame over the record
    limit is `too_large`, and not sent. Raises BadInput, NotFound (credentials, name): nothing in
    such a call can have been stored.
    """
    outcomes = [PutOutcome("", "not sent")] * len(frames)
    left = []
    for at, (key, data) in enumerate(frames):
        if len(key.encode()) + len(data) > KINESIS_RECORD_BYTES_MAX:
            outcomes[at] = PutOutcome("", TOO_LARGE)
        else:
            left.append(at)
    for attempt in range(attempts):
        if attempt and left:
            sleep(random.uniform(0, min(KINESIS_WAIT_S_MAX, _WAIT_S * 2**attempt)))
        for call in _calls(frames, left):
            for at, outcome in zip(call, _put(client, stream_name, frames, call), strict=True):
                outcomes[at] = outcome
        left = [at for at in left if not outcomes[at].accepted]
        if not left:
            break
    return outcomes


def records_from_lambda_event(event: Mapping[str, Any]) -> list[Record]:
    """The records of an invocation, in the order of the shard. Raises BadInput: another event."""
    try:
        return [_record_of(item) for item in event["Records"]]
    except (KeyError, TypeError, ValueError, binascii.Error) as error:
        raise BadInput(
            f"not an event of a Kinesis stream: {error!r}",
            hint="the function's trigger must be a Kinesis event source mapping",
        ) from error


def source_of_lambda_event(event: Mapping[str, Any]) -> str:
    """`<stream name>-<shard id>`: sequence numbers are unique and ordered within it."""
    try:
        first = event["Records"][0]
        stream_name = str(first["eventSourceARN"]).rpartition("/")[2]
        shard_id, separator, _ = str(first["eventID"]).partition(":")
    except (KeyError, IndexError, TypeError) as error:
        raise BadInput(f"not an event of a Kinesis stream: {error!r}") from error
    if not separator or not stream_name:
        raise BadInput(f"not an event of a Kinesis stream: {first['eventID']}")
    return f"{stream_name}-{shard_id}"


def read_records(
    client: Any,
    stream_name: str,
    *,
    after: Mapping[str, str] | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[tuple[str, Record]]:
    """(shard id, record) of what each shard holds now; `after`: sequence by shard id.

    Polls as the limits ask (5 reads a second and shard). Raises NotFound, Throttled, Unavailable.
    """
    try:
        pages = client.get_paginator("list_shards").paginate(StreamName=stream_name)
        shard_ids = [shard["ShardId"] for page in pages for shard in page["Shards"]]
        for shard_id in shard_ids:
            for item in _read_shard(
                client, stream_name, shard_id, (after or {}).get(shard_id), sleep
            ):
                yield shard_id, item
    except Exception as error:
        raise translate(error, stream_name) from error


def _calls(frames: Sequence[tuple[str, bytes]], left: Sequence[int]) -> Iterator[list[int]]:
    """Positions per PutRecords call: 500 records and 5 MiB, partition keys included."""
    call: list[int] = []
    call_bytes = 0
    for at in left:
        key, data = frames[at]
        record_bytes = len(key.encode()) + len(data)
        full = len(call) == KINESIS_CALL_RECORDS_MAX
        if call and (full or call_bytes + record_bytes > KINESIS_CALL_BYTES_MAX):
            yield call
            call, call_bytes = [], 0
        call.append(at)
        call_bytes += record_bytes
    if call:
        yield call


def _put(
    client: Any, stream_name: str, frames: Sequence[tuple[str, bytes]], call: Sequence[int]
) -> list[PutOutcome]:
    records = [{"PartitionKey": frames[at][0], "Data": frames[at][1]} for at in call]
    try:
        answer = client.put_records(StreamName=stream_name, Records=records)
    except Exception as error:
        problem = translate(error, stream_name)
        if not problem.retryable:
            raise problem from error
        return [PutOutcome("", problem.kind)] * len(call)
    return [
        PutOutcome(item.get("SequenceNumber") or "", item.get("ErrorCode") or "")
        for item in answer["Records"]
    ]


def _record_of(item: Mapping[str, Any]) -> Record:
    kinesis = item["kinesis"]
    # A float of seconds with milliseconds in it.
    arrival_ms = round(float(kinesis["approximateArrivalTimestamp"]) * 1000)
    return Record(
        data=base64.b64decode(kinesis["data"], validate=True),
        arrival_ns=arrival_ms * 1_000_000,
        sequence=str(kinesis["sequenceNumber"]),
    )


def _read_shard(
    client: Any,
    stream_name: str,
    shard_id: str,
    after: str | None,
    sleep: Callable[[float], None],
) -> Iterator[Record]:
    start: dict[str, str] = {"ShardIteratorType": "TRIM_HORIZON"}
    if after:
        start = {
            "ShardIteratorType": "AFTER_SEQUENCE_NUMBER",
            "StartingSequenceNumber": after,
        }
    iterator = client.get_shard_iterator(StreamName=stream_name, ShardId=shard_id, **start)[
        "ShardIterator"
    ]
    while iterator:
        answer = client.get_records(ShardIterator=iterator, Limit=_READ_RECORDS)
        for item in answer["Records"]:
            yield Record(
                data=item["Data"],
                arrival_ns=_arrival_ns(item["ApproximateArrivalTimestamp"]),
                sequence=item["SequenceNumber"],
            )
        iterator = answer.get("NextShardIterator")
        if not answer["Records"]:
            if not answer.get("MillisBehindLatest"):
                return
            sleep(0.2)


def _arrival_ns(moment: datetime) -> int:
    return round(moment.timestamp() * 1000) * 1_000_000
