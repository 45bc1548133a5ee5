"""Root of a query for callers with AWS credentials: plan, scatter, merge, answer.

Trigger: an invocation (RequestResponse) by a principal that IAM allows to; it may name any tenant:
    `{"tenant": "default", "path": "/v1/search", "body": {"query": "level>=ERROR"}}`. Paths and
    bodies are the HTTP API's; the answer is `{"status": 200, "body": {…}}`.
Reads: the tenant's indexes, hour markers and spilled outcomes in the store's bucket (LIST, GET).
Writes: what a tail has shown, for its next step (PUT under `_tmp/`); spilled outcomes and steps that
    were read are removed (DELETE under `_tmp/`).
Retries: scans that fail for now are scattered again; what stays unread is named in the answer. A
    caller may repeat an invocation: it changes nothing.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from ranklog.api.app import Handler
from ranklog.serverless.invocation import function_logger, invocation
from ranklog.serverless.root import answer_of_response, event_of_request, make_root
from ranklog.serverless.settings import SCAN_FUNCTION, read_settings

logger = function_logger("query")


@cache
def _root() -> Handler:
    return make_root(read_settings(os.environ, SCAN_FUNCTION), logger)


@invocation(logger)
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """A request in, `{"status", "body"}` out."""
    return answer_of_response(_root()(event_of_request(event), context))
