"""The write path of local mode: a disk stream's records into a store, batch by batch.

A batch is at most what one Lambda event holds. The stream remembers how far it was ingested into which
store only after a batch is committed: what is ingested again after a crash has the same (stream, seq)
and is shown once.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ranklog.access.meter import Meter
from ranklog.access.seals import Seals
from ranklog.ingest.allowance import Allowance
from ranklog.ingest.batch import IngestReport, ingest_batch
from ranklog.ingest.markers import Markers
from ranklog.ingest.shares import keep_measures
from ranklog.ingest.tenant_rules import TenantRules
from ranklog.limits import LOCAL_BATCH_BYTES_MAX
from ranklog.model.record import Record
from ranklog.store.protocol import Store

if TYPE_CHECKING:
    from ranklog.objectives.recorder import Recorder
    from ranklog.stream.disk import DiskStream


def consumer_of(store: Store) -> str:
    """The name under which a stream remembers how far it was ingested into this store."""
    return "ingest-" + hashlib.blake2b(store.url.encode(), digest_size=8).hexdigest()


def ingest_stream(
    stream: DiskStream, store: Store, recorder: Recorder | None = None, *, again: bool = False
) -> Iterator[IngestReport]:
    """Ingest what the stream holds past its checkpoint; one report per committed batch, whose measures
    the recorder keeps. `again`: all that it holds, for a store that has lost what it was given.

    Raises what the store and the stream raise: what was reported is stored, call it again for the rest.
    """
    rules, seals, markers = TenantRules(store), Seals(store), Markers(store)
    consumer = consumer_of(store)
    source = f"disk-{stream.identity}"
    allowance = Allowance(Meter(store, process=f"{consumer}-{stream.identity}", resume=True))
    for batch in _batches(stream.read("" if again else stream.checkpoint(consumer))):
        first, last = batch[0].sequence, batch[-1].sequence
        report = ingest_batch(
            batch,
            store=store,
            rules=rules,
            seals=seals,
            allowance=allowance,
            markers=markers,
            source=source,
            first=first,
            last=last,
        )
        if recorder is not None:
            keep_measures(report, recorder, time.time_ns())
        stream.commit(consumer, last)
        yield report
    allowance.meter.flush()


def _batches(records: Iterable[Record]) -> Iterator[list[Record]]:
    batch: list[Record] = []
    held = 0
    for record in records:
        if batch and held + len(record.data) > LOCAL_BATCH_BYTES_MAX:
            yield batch
            batch, held = [], 0
        batch.append(record)
        held += len(record.data)
    if batch:
        yield batch
