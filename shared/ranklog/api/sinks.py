"""Where `POST /v1/frames` puts frames: a Kinesis stream, one on disk, or at once into a store."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ranklog import limits
from ranklog.errors import BadInput, NotFound, TooLarge, Unavailable
from ranklog.ingest.quarantine import FAILED
from ranklog.model.record import Record
from ranklog.store.prompt import Overdue, done_within
from ranklog.store.protocol import Store
from ranklog.stream.frames import PeekedFrame, peek_header
from ranklog.stream.kinesis import TOO_LARGE, put_frames
from ranklog.stream.partition import partition_key

if TYPE_CHECKING:
    from ranklog.access.seals import Seals
    from ranklog.ingest.batch import IngestReport
    from ranklog.ingest.tenant_rules import TenantRules
    from ranklog.objectives.recorder import Recorder
    from ranklog.stream.disk import DiskStream


class KinesisFrames:
    """Frames into a Kinesis stream, in the order of their host. `client` is boto3's.

    Whose a frame is was proven to the API; `seals` says it to ingest, which sees only the frame.
    """

    def __init__(self, client: Any, stream_name: str, seals: Seals | None = None) -> None:
        self._client = client
        self._stream_name = stream_name
        self._seals = seals

    def accept(self, tenant: str, data: bytes) -> None:
        """Returns once Kinesis has the frame. Raises Unavailable, TooLarge."""
        key = _partition_key(tenant, peek_header(data))
        if self._seals is not None:
            data = self._seals.seal(tenant, data)
        try:
            [outcome] = put_frames(self._client, self._stream_name, [(key, data)])
        except (BadInput, NotFound) as error:  # our credentials, our stream: not the frame's fault
            raise Unavailable(f"the stream can't be written to: {error.message}") from error
        if outcome.reason == TOO_LARGE:
            raise TooLarge(f"a frame of {len(data)} bytes is over the limit of a Kinesis record")
        if not outcome.accepted:
            raise Unavailable(f"the stream did not take the frame: {outcome.reason}")


class DiskFrames:
    """Frames into a stream on this machine's disk, for `ranklog serve --roles ingest`."""

    def __init__(self, stream: DiskStream, seals: Seals) -> None:
        self._stream = stream
        self._seals = seals
        # Seals are for one thread.
        self._lock = threading.Lock()

    def accept(self, tenant: str, data: bytes) -> None:
        """Returns once the disk has the frame. Raises StoreFull, Unavailable."""
        key = _partition_key(tenant, peek_header(data))
        with self._lock:
            sealed = self._seals.seal(tenant, data)
        self._stream.put(key, sealed)


class StoreFrames:
    """Frames ingested into a store before they are acknowledged; whose they are the API has proven.

    A frame's source range is its agent, number and hash: one that is sent again stores nothing. So a commit
    that the store keeps waiting is given up by the request alone: it may yet succeed.
    """

    def __init__(
        self, store: Store, clock_ns: Callable[[], int], recorder: Recorder | None = None
    ) -> None:
        """`recorder` keeps what is measured of the frames."""
        self._store = store
        self._recorder = recorder
        self._clock_ns = clock_ns
        self._rules: TenantRules | None = None
        # Ingest is numpy over a whole frame: two at once would only wait for each other.
        self._lock = threading.Lock()
        self._overdue = False

    def accept(self, tenant: str, data: bytes) -> None:
        """Returns once the frame is searchable. Raises BadInput, StoreFull, Unavailable: the last within
        FRAME_COMMIT_S_MAX, and at once while a commit is overdue."""
        peeked = peek_header(data)
        ends_s = time.monotonic() + limits.FRAME_COMMIT_S_MAX
        if self._overdue or not self._lock.acquire(timeout=limits.FRAME_COMMIT_S_MAX):
            raise Unavailable("frames before this one still wait for the store")
        try:
            left_s = max(0.0, ends_s - time.monotonic())
            report = done_within(left_s, lambda: self._ingest(peeked, data), self._ended)
        except Overdue:
            self._overdue = self._lock.locked()
            raise
        except (BadInput, NotFound) as error:  # what is wrong with the frame is in the report
            raise Unavailable(f"the store can't be written to: {error.message}") from error
        if report.bad and report.bad[0].code != FAILED:  # a bug of ours: it is kept in quarantine
            raise BadInput(f"the frame can't be read: {report.bad[0].reason}")

    def _ended(self) -> None:
        self._overdue = False
        self._lock.release()

    def _ingest(self, peeked: PeekedFrame, data: bytes) -> IngestReport:
        """The frame is in the store when this returns; who has the lock may call."""
        from ranklog.ingest.batch import ingest_batch
        from ranklog.ingest.tenant_rules import TenantRules

        sequence = f"{peeked.header.number:020d}-{peeked.header_hash[:16]}"
        self._rules = self._rules or TenantRules(self._store)
        report = ingest_batch(
            [Record(data, self._clock_ns(), sequence)],
            store=self._store,
            rules=self._rules,
            source=f"http-{peeked.header.agent}",
            first=sequence,
            last=sequence,
        )
        if self._recorder is not None:
            from ranklog.ingest.shares import keep_measures

            keep_measures(report, self._recorder, self._clock_ns())
        return report


def _partition_key(tenant: str, peeked: PeekedFrame) -> str:
    streams = peeked.header.streams
    if not streams:
        return partition_key(tenant, "", None)
    first = streams[0].stream
    return partition_key(tenant, first.run, first.host)
