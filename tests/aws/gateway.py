"""The HTTP API of template.yaml without API Gateway: its routes, its authorizer with the cache, its answers.

What AWS documents: without the header that identifies a caller 401 and no authorizer; what the authorizer
refuses 403; what it breaks on 500; an answer of it is remembered by that header, refusals too.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from tests.aws.events import authorizer_event, http_event
from tests.aws.stack import Route, read_template, routes

Function = Callable[[dict[str, Any]], Any]


@dataclass
class Gateway:
    """`request` answers as the deployed API would. `asked`: calls of the authorizer."""

    authorizer: Function
    api: Function
    now_s: Callable[[], float] = time.monotonic
    asked: int = 0
    _known: dict[str, tuple[float, dict[str, Any]]] = field(default_factory=dict)

    def request(
        self,
        method: str,
        path: str,
        *,
        key: str | None = None,
        headers: dict[str, str] | None = None,
        body: str | bytes | None = None,
        query: dict[str, str] | None = None,
    ) -> dict[str, Any]:
        route = next((one for one in ROUTES if one.takes(method, path)), None)
        if route is None:
            return _said(404, "Not Found")
        event = http_event(method, path, query=query)
        event |= {"routeKey": route.key, "rawQueryString": urlencode(query or {})}
        event["headers"] |= {name.lower(): value for name, value in (headers or {}).items()}
        if key is not None:
            event["headers"]["authorization"] = f"Bearer {key}"
        if body is not None:
            raw = isinstance(body, bytes)
            event["body"] = base64.b64encode(body).decode() if isinstance(body, bytes) else body
            event["isBase64Encoded"] = raw
        if not route.public:
            refusal = self._authorize(event, route)
            if refusal is not None:
                return refusal
        answer: dict[str, Any] = self.api(event)
        return answer

    def _authorize(self, event: dict[str, Any], route: Route) -> dict[str, Any] | None:
        header = event["headers"].get("authorization")
        if not header:
            return _said(401, "Unauthorized")
        known = self._known.get(header)
        if known is None or self.now_s() - known[0] >= TTL_S:
            asked = authorizer_event(route.method, event["rawPath"], route.key)
            asked |= {"identitySource": [header], "headers": event["headers"]}
            self.asked += 1
            try:
                known = (self.now_s(), self.authorizer(asked))
            except Exception:
                return _said(500, "Internal Server Error")
            self._known[header] = known
        if known[1].get("isAuthorized") is not True:
            return _said(403, "Forbidden")
        event["requestContext"]["authorizer"] = {"lambda": known[1].get("context", {})}
        return None


def _said(status: int, message: str) -> dict[str, Any]:
    body = f'{{"message":"{message}"}}'
    return {"statusCode": status, "headers": {"Content-Type": "application/json"}, "body": body}


ROUTES = routes(read_template())
_AUTH = read_template()["Resources"]["HttpApi"]["Properties"]["Auth"]
TTL_S: int = _AUTH["Authorizers"][_AUTH["DefaultAuthorizer"]]["Identity"]["ReauthorizeEvery"]
