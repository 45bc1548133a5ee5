"""The HTTP API: who has a tenant's key asks about that tenant's lines, and sends its frames.

Trigger: the HTTP API (payload format 2.0): `/v1/…` behind the authorizer, which says whose request it is,
    `GET /v1/health` and `GET /openapi.json` without.
Reads: the tenant's indexes, hour markers and spilled outcomes in the store's bucket (LIST, GET).
Writes: `POST /v1/frames` puts frames into the Kinesis stream and answers when it has them; what a
    tail has shown is kept for its next step (PUT under `_tmp/`); spilled outcomes and steps that were
    read are removed (DELETE under `_tmp/`).
Retries: scans that fail for now are scattered again, refused frames put again; what stays undone is
    an error with `Retry-After` or named in the answer. A client may repeat a request: a frame that
    is sent twice is stored once or skipped by queries.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from ranklog.api.app import Handler
from ranklog.serverless.invocation import function_logger, invocation
from ranklog.serverless.root import make_root
from ranklog.serverless.settings import SCAN_FUNCTION, STREAM, read_settings

logger = function_logger("api")


@cache
def _root() -> Handler:
    return make_root(read_settings(os.environ, SCAN_FUNCTION, STREAM), logger)


@invocation(logger)
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """An API Gateway event in, its response out."""
    return _root()(event, context)
