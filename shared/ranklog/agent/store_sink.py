"""A store as an agent's destination: no stream and nobody else between them.

Ingest is imported here alone: it needs numpy and pyarrow, which takes some 100 MiB of memory.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from ranklog.agent.sinks import TAKEN, Frame, Outcome, is_refused
from ranklog.errors import RanklogError, Unavailable
from ranklog.ingest.batch import ingest_batch
from ranklog.ingest.markers import Markers
from ranklog.ingest.records import chosen_names
from ranklog.ingest.tenant_rules import TenantRules
from ranklog.model.record import Record
from ranklog.store.open import open_store
from ranklog.stream.frames import peek_header

# Every batch is objects of its own: they should hold some seconds of a node's lines.
BATCH_AGE_S = 2.0
BATCH_AGE_S3_S = 10.0


class StoreSink:
    """Ingests frames as they are handed over. Bad ones are quarantined by ingest itself."""

    def __init__(self, url: str) -> None:
        self._store = open_store(url, create=True)
        self._rules, self._markers = TenantRules(self._store), Markers(self._store)
        self.batch_age_s = BATCH_AGE_S3_S if url.startswith("s3://") else BATCH_AGE_S

    def put_all(self, frames: Sequence[Frame]) -> list[Outcome]:
        arrival_ns = time.time_ns()
        records = [Record(data, arrival_ns, _sequence(data)) for _, data in frames]
        outcome = self._ingest(records)
        if outcome.error is None or not is_refused(outcome.error):
            return [outcome] * len(records)
        if len(records) == 1:
            return [_for_now(outcome)]
        # One of them is at fault: the others are not refused with it. If all are, none of them is: it
        # is the store's address, or credentials, which may be set right.
        outcomes = [self._ingest([record]) for record in records]
        if any(one.error is None or not is_refused(one.error) for one in outcomes):
            return outcomes
        return [_for_now(outcome)] * len(records)

    def _ingest(self, records: Sequence[Record]) -> Outcome:
        agent = records[0].sequence.partition("-")[0]
        try:
            ingest_batch(
                records,
                store=self._store,
                rules=self._rules,
                markers=self._markers,
                **chosen_names(f"agent-{agent}", [record.sequence for record in records]),
            )
        except RanklogError as error:
            return Outcome(error)
        return TAKEN


def _for_now(outcome: Outcome) -> Outcome:
    """What is wrong with a frame ingest sets aside itself: so this is no frame's fault."""
    assert outcome.error is not None
    return Outcome(Unavailable(outcome.error.message, hint=outcome.error.hint))


def _sequence(data: bytes) -> str:
    """The agent and the number of a frame; what can't be read sorts first."""
    try:
        header = peek_header(data).header
    except RanklogError:
        return "unknown-0"
    return f"{header.agent}-{header.number:012d}"
