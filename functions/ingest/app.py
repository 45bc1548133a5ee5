"""Write path on AWS: one batch of a Kinesis shard becomes segments and indexes.

Trigger: the event source mapping of the frames stream, one shard's records in order.
Reads: the batch, each tenant's `config/rules/` (LIST, GET; again when a minute old), and its ingest keys
    and whether it requires them (LIST, GET; again when 5 s old), how long it keeps lines (GET; as rules).
    What all processes counted for a tenant with a quota this hour (LIST, GET; again when 10 s old).
Writes: segments and indexes of the tenants in the batch, markers of their hours (again when ten minutes old),
    and what can't be decoded or does not prove its tenant to their `quarantine/`, with its reason (PUT);
    frames over a tenant's quota to its `waiting/`; what it counted for a tenant to its `usage/`, every 10 s
    with a quota, else every 60.
Retries: a batch that the store did not take whole is reported from its first record and comes
    again: what is committed already is met and left as it is. A frame that can't be decoded is
    quarantined and never fails a batch. Any other exception is raised, so that Lambda halves the
    batch until the record that causes it is alone, and after its retries sends that record's
    position to the queue of failures.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from ranklog.access.meter import Meter
from ranklog.access.seals import Seals
from ranklog.errors import RanklogError
from ranklog.ingest.allowance import Allowance
from ranklog.ingest.batch import ingest_batch
from ranklog.ingest.floors import Policies
from ranklog.ingest.markers import Markers
from ranklog.ingest.tenant_rules import TenantRules
from ranklog.serverless.ingest_watch import IngestWatch
from ranklog.serverless.invocation import function_logger, invocation
from ranklog.serverless.settings import read_settings
from ranklog.store import open_store
from ranklog.stream.kinesis import records_from_lambda_event, source_of_lambda_event

logger = function_logger("ingest")


@cache
def _resources() -> tuple[IngestWatch, TenantRules, Seals, Policies, Allowance, Markers]:
    settings = read_settings(os.environ)
    watch = IngestWatch(logger, open_store(settings.store_url))
    seals = Seals(watch.store, retention_ns=settings.stream_retention_ns)
    allowance = Allowance(Meter(watch.store))
    policies, markers = Policies(watch.store), Markers(watch.store)
    return watch, TenantRules(watch.store), seals, policies, allowance, markers


@invocation(logger)
def handler(event: dict[str, Any], context: Any) -> dict[str, list[dict[str, str]]]:
    """A Kinesis event in, the response of ReportBatchItemFailures out."""
    watch, rules, seals, policies, allowance, markers = _resources()
    watch.begin()
    records = records_from_lambda_event(event)
    source, first, last = source_of_lambda_event(event), records[0].sequence, records[-1].sequence
    logger.append_keys(source=source, first=first, last=last, records=len(records))
    try:
        report = ingest_batch(
            records,
            store=watch.store,
            rules=rules,
            seals=seals,
            policies=policies,
            allowance=allowance,
            markers=markers,
            source=source,
            first=first,
            last=last,
        )
    except RanklogError as error:
        logger.exception("batch not stored", extra={"kind": error.kind})
        return {"batchItemFailures": [{"itemIdentifier": first}]}
    watch.stored(report, sorted("/".join(name) for name in rules.refused))
    return {"batchItemFailures": []}
