"""Batches that Lambda gave up: back into the stream, from the bucket where they were kept whole.

    aws/lambda/<mapping>/<shard>/<time>-<id>      JSON; its `payload` is the event, as text

A frame keeps its identity, so that what had been stored, or is put twice, is stored once.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ranklog.errors import Corrupt, RanklogError, Unavailable
from ranklog.store.protocol import Store
from ranklog.stream.kinesis import put_frames

PREFIX = "aws/lambda/"


@dataclass(slots=True)
class Returned:
    """`batches` and their `frames` that are in the stream again; `failed`: key -> why it stays."""

    batches: int = 0
    frames: int = 0
    bytes: int = 0
    failed: dict[str, str] = field(default_factory=dict)


def return_given_up(kept: Store, client: Any, stream_name: str) -> Returned:
    """Put every batch into the stream, oldest first of each shard, and delete it when all its frames are
    there. It can be stopped and repeated. Raises what the store raises, and NotFound for the stream."""
    result = Returned()
    for info in list(kept.list(PREFIX)):
        try:
            frames = list(frames_of_record(kept.get(info.key), info.key))
            outcomes = put_frames(client, stream_name, frames)
            refused = [outcome.reason for outcome in outcomes if not outcome.accepted]
            if refused:
                raise Unavailable(f"{len(refused)} of {len(frames)} frames: {refused[0]}")
        except (Corrupt, Unavailable) as error:
            result.failed[info.key] = _said(error)
            continue
        kept.delete(info.key)
        result.batches += 1
        result.frames += len(frames)
        result.bytes += sum(len(data) for _, data in frames)
    return result


def frames_of_record(data: bytes, key: str) -> Iterator[tuple[str, bytes]]:
    """(partition key, frame) of the batch in such an object. Raises Corrupt."""
    try:
        payload = json.loads(json.loads(data)["payload"])
        records = [item["kinesis"] for item in payload["Records"]]
        frames = [(str(one["partitionKey"]), base64.b64decode(one["data"])) for one in records]
    except (ValueError, KeyError, TypeError, binascii.Error) as error:
        raise Corrupt(
            f"{key} is no batch that Lambda gave up: {error!r}",
            hint="look at it, then move it away",
        ) from error
    yield from frames


def _said(error: RanklogError) -> str:
    return error.message
