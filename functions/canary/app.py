"""Writes numbered lines as the API does, searches for them as a user does, and tells what became of them.

Trigger: a schedule, every 5 minutes; the event is not looked at.
Reads: the tenant's ingest keys, its indexes and spilled outcomes in the store's bucket (LIST, GET); segments by way
    of the scan function.
Writes: one frame of the run `ranklog-canary` into the Kinesis stream (PutRecords); CloudWatch metrics by way of the
    log, the tenant's measures (PUT).
Retries: none: a round that fails is an outcome. The next schedule is the next round.
"""

from __future__ import annotations

import os
import time
from functools import cache
from typing import Any

from ranklog.canary.rounds import run_round
from ranklog.canary.writers import AsFrame
from ranklog.client import Client
from ranklog.objectives.names import CANARY_DOUBLED, CANARY_MISSING
from ranklog.objectives.recorder import Recorder
from ranklog.serverless.canary import CanarySettings, make_client, make_sink, read_canary
from ranklog.serverless.invocation import function_logger, invocation
from ranklog.serverless.metrics import put_metrics
from ranklog.store import open_store

logger = function_logger("canary")


@cache
def _resources() -> tuple[CanarySettings, AsFrame, Client, Recorder]:
    settings = read_canary(os.environ)
    store = open_store(settings.store_url)
    sink = make_sink(settings, store)
    writer = AsFrame(sink.accept, settings.tenant, "canary-function", time.time_ns)
    return settings, writer, make_client(settings, store), Recorder(store, every_s=0)


@invocation(logger)
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """What became of one round."""
    settings, writer, client, recorder = _resources()
    logger.append_keys(tenant=settings.tenant)
    left_s = context.get_remaining_time_in_millis() / 1000 - settings.reserve_s
    outcome = run_round(
        writer, client, lines=settings.lines, timeout_s=max(1.0, min(settings.seconds, left_s))
    )
    told = outcome.to_json()
    logger.append_keys(run=outcome.round.run_id, query_id=outcome.round.round_id)
    logger.info("round", extra={"outcome": told, "well": outcome.is_well})
    measures = outcome.measures()
    # told where they are 0, too: silence is an alarm
    told_always = {name: measures.counts[name] for name in (CANARY_MISSING, CANARY_DOUBLED)}
    put_metrics(logger.service, settings.tenant, measures, told_always)
    recorder.add(settings.tenant, measures)
    return told
