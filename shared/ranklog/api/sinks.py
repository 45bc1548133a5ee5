"""Where `POST /v1/frames` puts frames: a Kinesis stream, or at once into a store."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ranklog.errors import BadInput, TooLarge, Unavailable
from ranklog.model.record import Record
from ranklog.store.protocol import Store
from ranklog.stream.frames import PeekedFrame, peek_header
from ranklog.stream.kinesis import TOO_LARGE, put_frames
from ranklog.stream.partition import partition_key

if TYPE_CHECKING:
    from ranklog.rules import RuleSet

# A tenant's rules are read again after this time.
RULES_NS = 60 * 1_000_000_000


class KinesisFrames:
    """Frames into a Kinesis stream, in the order of their host. `client` is boto3's."""

    def __init__(self, client: Any, stream_name: str) -> None:
        self._client = client
        self._stream_name = stream_name

    def accept(self, tenant: str, data: bytes) -> None:
        """Returns once Kinesis has the frame. Raises Unavailable, TooLarge."""
        key = _partition_key(tenant, peek_header(data))
        [outcome] = put_frames(self._client, self._stream_name, [(key, data)])
        if outcome.reason == TOO_LARGE:
            raise TooLarge(f"a frame of {len(data)} bytes is over the limit of a Kinesis record")
        if not outcome.accepted:
            raise Unavailable(f"the stream did not take the frame: {outcome.reason}")


class StoreFrames:
    """Frames ingested into a store before they are acknowledged.

    A frame's source range is its agent, number and hash: one that is sent again stores nothing.
    """

    def __init__(self, store: Store, clock_ns: Callable[[], int]) -> None:
        self._store = store
        self._clock_ns = clock_ns
        self._rules: dict[str, tuple[int, RuleSet]] = {}
        # Ingest is numpy over a whole frame: two at once would only wait for each other.
        self._lock = threading.Lock()

    def accept(self, tenant: str, data: bytes) -> None:
        """Returns once the frame is searchable. Raises BadInput, StoreFull, Unavailable."""
        from ranklog.ingest.batch import ingest_batch

        peeked = peek_header(data)
        now_ns = self._clock_ns()
        sequence = f"{peeked.header.number:020d}-{peeked.header_hash[:16]}"
        with self._lock:
            report = ingest_batch(
                [Record(data, now_ns, sequence)],
                store=self._store,
                rules=self._rules_of(tenant, now_ns),
                source=f"http-{peeked.header.agent}",
                first=sequence,
                last=sequence,
            )
        if report.bad:
            raise BadInput(f"the frame can't be read: {report.bad[0].reason}")

    def _rules_of(self, tenant: str, now_ns: int) -> RuleSet:
        from ranklog.rules import load_ruleset

        known = self._rules.get(tenant)
        if known is None or not 0 <= now_ns - known[0] < RULES_NS:
            rules, _ = load_ruleset(self._store, tenant)
            known = self._rules[tenant] = (now_ns, rules)
        return known[1]


def _partition_key(tenant: str, peeked: PeekedFrame) -> str:
    streams = peeked.header.streams
    if not streams:
        return partition_key(tenant, "", None)
    first = streams[0].stream
    return partition_key(tenant, first.run, first.host)
