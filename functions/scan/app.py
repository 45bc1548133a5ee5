"""Leaf of a query: evaluate one task over the segments it names.

Trigger: an invocation (RequestResponse) by the query or api function, one task each.
Reads: byte ranges of segments in the store's bucket (GET).
Writes: an outcome too large for Lambda's payload, under `_tmp/` (PUT).
Retries: none of its own. What it can't read is named in the outcome, and the caller asks again; a
    task only reads, so that running it twice does no harm.
"""

from __future__ import annotations

import json
import os
import time
from functools import cache
from typing import Any

from ranklog.scan.evaluate import evaluate
from ranklog.scan.lambda_invoke import pack_outcome
from ranklog.serverless.asked import take_asked
from ranklog.serverless.invocation import function_logger, invocation
from ranklog.serverless.settings import read_settings
from ranklog.serverless.spending import CountedStore, Spending
from ranklog.store import Store, open_store

logger = function_logger("scan")


@cache
def _resources() -> tuple[Store, Spending]:
    spending = Spending()
    return CountedStore(open_store(read_settings(os.environ).store_url), spending), spending


@invocation(logger)
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Task in, packed outcome and what it took out; Lambda has parsed the one and renders the other."""
    store, spending = _resources()
    spending.begin()
    started_s = time.perf_counter()
    asked = take_asked(event)
    logger.append_keys(tenant=asked.tenant, run=asked.run, query_id=asked.query_id)
    outcome = evaluate(json.dumps(event).encode(), store)
    packed = pack_outcome(outcome)
    spent = {**spending.so_far().to_json(), "ms": (time.perf_counter() - started_s) * 1000}
    logger.info("evaluated", extra={"outcome_bytes": len(outcome), "spent": spent})
    return {**packed, "spent": spent}
