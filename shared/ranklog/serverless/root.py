"""The root of queries on AWS: the HTTP API's handler over S3, its scans scattered to Lambda.

Both root functions use it. Behind the HTTP API a request is its key's tenant's; who may invoke the
query function directly was let in by IAM, and names the tenant beside the request, never in it.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from aws_lambda_powertools import Logger

from ranklog.access.meter import Meter
from ranklog.access.seals import Seals
from ranklog.admin import Admin
from ranklog.admin.local import LocalAdmin
from ranklog.api.app import Handler, make_api
from ranklog.api.problems import PROBLEM
from ranklog.api.settings import Settings
from ranklog.api.sinks import KinesisFrames
from ranklog.client import Client
from ranklog.client.reader import local_reader
from ranklog.errors import BadInput
from ranklog.limits import (
    API_AUDIT_BYTES_MAX,
    CLIENTS_KEPT_MAX,
    LAMBDA_ANSWER_SECONDS,
    LAMBDA_TASK_SECONDS_MAX,
    PAYLOAD_BYTES_MAX,
    RESULTS_BYTES_MAX,
)
from ranklog.scan.lambda_invoke import LambdaInvoker
from ranklog.serverless.root_watch import RootWatch
from ranklog.serverless.settings import FunctionSettings
from ranklog.store.aws import aws_client
from ranklog.store.open import open_store
from ranklog.store.prompt import Prompt

# Its role may not: what removes objects, and what ingests, is other functions' business.
_ELSEWHERE = "the stack's functions apply retention each hour; a replay needs the store"
_MEMBERS = frozenset({"tenant", "method", "path", "parameters", "body"})


def make_root(settings: FunctionSettings, logger: Logger) -> Handler:
    """A handler of API Gateway v2 events: only whom an authorizer vouches for is answered. Frames are
    taken where a stream is set. Each request is told to the logger, and measured."""
    left = _TimeLeft()
    watch = RootWatch(logger, open_store(settings.store_url))
    store = watch.store
    prompt = Prompt(store)
    invoker = LambdaInvoker(settings.scan_function, tell=watch.tell, told=watch.told)

    @lru_cache(CLIENTS_KEPT_MAX)
    def client_of(tenant: str) -> Client:
        return Client(
            store=store,
            tenant=tenant,
            invoker=invoker,
            concurrency=settings.scan_concurrency,
            seconds_left=left.seconds_left,
            results_bytes=RESULTS_BYTES_MAX // 4,
        )

    def admin_of(tenant: str) -> Admin:
        reader = local_reader(
            store,
            tenant,
            invoker=invoker,
            concurrency=settings.scan_concurrency,
            seconds_left=left.seconds_left,
        )
        return LocalAdmin(
            store, tenant, reader, audit_bytes_max=API_AUDIT_BYTES_MAX, elsewhere=_ELSEWHERE
        )

    stream = settings.kinesis_stream
    handler = make_api(
        Settings(
            client_of=client_of,
            sink=KinesisFrames(aws_client("kinesis"), stream, Seals(prompt)) if stream else None,
            keys=None,
            tenant=None,
            meter=Meter(prompt),
            admin_of=admin_of if stream else None,
            begun=watch.begun,
            observe=watch.observe,
        )
    )

    def answer(event: dict[str, Any], context: Any) -> dict[str, Any]:
        left.begin(context)
        watch.begin()
        return _bounded(handler(event, context))

    return answer


class _TimeLeft:
    """What is left of the invocation that is under way; Lambda gives a root one at a time."""

    def __init__(self) -> None:
        self._until_s = math.inf

    def begin(self, context: Any) -> None:
        self._until_s = time.monotonic() + context.get_remaining_time_in_millis() / 1000

    def seconds_left(self) -> float:
        """For scans that begin now, so that their outcomes can still be merged and answered."""
        left = self._until_s - time.monotonic() - LAMBDA_ANSWER_SECONDS
        return max(0.0, min(left, LAMBDA_TASK_SECONDS_MAX))


def event_of_request(request: Mapping[str, Any]) -> dict[str, Any]:
    """`{"tenant", "path", "method", "parameters", "body"}` as an event of the HTTP API.

    Raises BadInput. `method` is POST where there is a body, else GET.
    """
    unknown = sorted(set(request) - _MEMBERS)
    tenant, path, body = request.get("tenant"), request.get("path"), request.get("body")
    if unknown or not (isinstance(tenant, str) and tenant and isinstance(path, str)):
        raise BadInput(
            f"a request with {', '.join(unknown) or 'no tenant or path'}",
            hint='send {"tenant": "default", "path": "/v1/search", "body": {"query": "loss"}}',
        )
    method = str(request.get("method") or ("GET" if body is None else "POST"))
    return {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": "",
        "queryStringParameters": dict(request.get("parameters") or {}),
        "headers": {"content-type": "application/json"},
        "requestContext": {
            "http": {"method": method, "path": path},
            "stage": "$default",
            "authorizer": {"lambda": {"tenant": tenant, "scopes": "read"}},
        },
        "body": None if body is None else json.dumps(body),
        "isBase64Encoded": False,
    }


def answer_of_response(response: Mapping[str, Any]) -> dict[str, Any]:
    """`{"status", "body"}` of what the handler returns; the body is JSON or text."""
    body = response.get("body") or ""
    is_json = "json" in str(_header(response, "content-type")) and "ndjson" not in str(
        _header(response, "content-type")
    )
    return {"status": response["statusCode"], "body": json.loads(body) if is_json else body}


def _header(response: Mapping[str, Any], name: str) -> Any:
    for part in ("headers", "multiValueHeaders"):
        for key, value in (response.get(part) or {}).items():
            if key.lower() == name:
                return value
    return None


def _bounded(response: dict[str, Any]) -> dict[str, Any]:
    """Lambda refuses a response over its limit without a word to the caller; we say what to do."""
    body = response.get("body") or ""
    # The runtime renders the body as a JSON string: quotes and backslashes count twice.
    size = len(body.encode()) + body.count('"') + body.count("\\")
    if size <= PAYLOAD_BYTES_MAX:
        return response
    problem = {
        "type": "about:blank",
        "title": "Content Too Large",
        "status": 413,
        "detail": f"an answer of {size} bytes; Lambda takes {PAYLOAD_BYTES_MAX}",
        "kind": "too_large",
        "hint": "ask for less with limit, and go on with the cursor of the answer",
        "position": None,
    }
    return {
        "statusCode": 413,
        "headers": {"Content-Type": PROBLEM},
        "body": json.dumps(problem),
        "isBase64Encoded": False,
    }
