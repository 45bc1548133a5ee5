"""Whose key a request of the HTTP API brings.

Trigger: the HTTP API before it invokes the api function (authorizer, payload format 2.0, simple responses); it
    remembers an answer for 15 s, by the header Authorization.
Reads: the key's record in the store's bucket, `<tenant>/config/keys/api/<id>.json` (one GET; text that is no
    key costs none).
Writes: nothing.
Retries: none. Where the store does not answer within STORE_PROMPT_S_MAX, or at all, an exception says so,
    the gateway answers 500, and the client asks again.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from ranklog.access.api_keys import StoreKeys
from ranklog.serverless.authorize import authorize
from ranklog.serverless.invocation import function_logger, invocation
from ranklog.serverless.settings import read_settings
from ranklog.store import open_store
from ranklog.store.prompt import Prompt

logger = function_logger("authorizer")


@cache
def _keys() -> StoreKeys:
    # The gateway remembers: twice would be twice as long until a revoked key stops.
    store = Prompt(open_store(read_settings(os.environ).store_url))
    return StoreKeys(store, age_ns_max=0)


@invocation(logger)
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """An authorizer's event in, `{"isAuthorized", "context"}` out."""
    answer = authorize(event, _keys())
    said = answer.get("context", {})
    logger.info(
        "asked",
        extra={
            "route": event["routeKey"],
            "authorized": answer["isAuthorized"],
            "tenant": said.get("tenant"),
            "key": said.get("key"),
        },
    )
    return answer
