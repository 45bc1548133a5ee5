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
from functools import cache
from typing import Any

from aws_lambda_powertools import Logger

from ranklog.scan.evaluate import evaluate
from ranklog.scan.lambda_invoke import pack_outcome
from ranklog.serverless.settings import read_settings
from ranklog.store import Store, open_store

logger = Logger(service="scan")


@cache
def _store() -> Store:
    return open_store(read_settings(os.environ).store_url)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: Any) -> dict[str, str]:
    """Task in, packed outcome out; Lambda has parsed the one and renders the other."""
    outcome = evaluate(json.dumps(event).encode(), _store())
    logger.info("evaluated", extra={"outcome_bytes": len(outcome)})
    return pack_outcome(outcome)
