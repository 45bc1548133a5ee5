"""An HTTP API of API Gateway (payload format 2.0): routes, throttling, an authorizer, one function.

    from the template: events of type HttpApi, DefaultRouteSettings and RouteSettings, Auth

As there: a body that is no text goes in base64, a function that fails is a 500, one that takes 30 s a 503,
a route over its rate a 429, a request that the authorizer refuses a 403, one without what identifies it a 401.
"""

from __future__ import annotations

import base64
import json
import re
import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any
from urllib.parse import parse_qsl, unquote

from tests.artefacts.http import HttpServer, Request, Response
from tests.artefacts.lambdas import LambdaService, Throttled
from tests.artefacts.template import ACCOUNT, Template

TIMEOUT_S = 30.0
BODY_BYTES_MAX = 10 * 1024 * 1024
_TEXT = re.compile(
    r"text/|application/(json|xml|javascript|x-www-form-urlencoded|[\w.-]+\+(json|xml))"
)


@dataclass(frozen=True, slots=True)
class Route:
    """`key` as in the template, `ANY /v1/{proxy+}`."""

    key: str
    function: str
    authorizer: str | None

    def matches(self, method: str, path: str) -> dict[str, str] | None:
        """The path's parameters where the route takes the request."""
        wanted, _, pattern = self.key.partition(" ")
        if wanted not in ("ANY", method):
            return None
        regex = re.sub(r"\\\{(\w+)\\\+\\\}", r"(?P<\1>.+)", re.escape(pattern))
        regex = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", regex)
        found = re.fullmatch(regex, path)
        return None if found is None else found.groupdict()

    @property
    def order(self) -> tuple[bool, int]:
        """The most specific route wins."""
        return "{" in self.key, -len(self.key)


@dataclass(slots=True)
class _Bucket:
    """A token bucket: `rate` requests a second, `burst` at once."""

    rate: float
    burst: float
    tokens: float = field(default=-1.0)
    at_s: float = 0.0

    def take(self, now_s: float) -> bool:
        full = self.burst if self.tokens < 0 else self.tokens + (now_s - self.at_s) * self.rate
        self.tokens, self.at_s = min(self.burst, full), now_s
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


class HttpApi:
    """The API of a template in front of its functions. `url` is what clients are told."""

    def __init__(self, template: Template, service: LambdaService) -> None:
        self._service = service
        (self._api,) = template.resources("AWS::Serverless::HttpApi").values()
        auth = self._api.get("Auth", {})
        self._authorizers: dict[str, dict[str, Any]] = auth.get("Authorizers", {})
        self._routes = sorted(
            _routes(template, auth.get("DefaultAuthorizer")), key=lambda r: r.order
        )
        self._buckets = {route.key: self._bucket(route.key) for route in self._routes}
        self._lock = threading.Lock()
        self._known: dict[tuple[str, ...], tuple[float, dict[str, Any]]] = {}
        self._server = HttpServer(self._answer)

    @property
    def url(self) -> str:
        """For --api."""
        return self._server.url

    def close(self) -> None:
        """Take no more requests."""
        self._server.close()

    def _bucket(self, key: str) -> _Bucket:
        shared = self._api.get("DefaultRouteSettings", {})
        own = shared | self._api.get("RouteSettings", {}).get(key, {})
        rate, burst = own.get("ThrottlingRateLimit"), own.get("ThrottlingBurstLimit")
        return _Bucket(float(rate or "inf"), float(burst or "inf"))

    def _answer(self, request: Request) -> Response:
        path = unquote(request.path)
        for route in self._routes:
            found = route.matches(request.method, path)
            if found is not None:
                return self._routed(route, request, found)
        return _said(404, "Not Found")

    def _routed(self, route: Route, request: Request, found: dict[str, str]) -> Response:
        with self._lock:
            admitted = self._buckets[route.key].take(time.monotonic())
        if not admitted:
            return _said(429, "Too Many Requests")
        if len(request.body) > BODY_BYTES_MAX:
            return _said(413, "Request Entity Too Large")
        event = event_of(route.key, request, found)
        if route.authorizer is not None:
            context = self._authorize(route.authorizer, event)
            if isinstance(context, Response):
                return context
            event["requestContext"]["authorizer"] = {"lambda": context}
        return self._call(route.function, event)

    def _call(self, function: str, event: dict[str, Any]) -> Response:
        started_s = time.monotonic()
        try:
            done = self._service.invoke(function, json.dumps(event).encode())
        except Throttled:
            return _said(503, "Service Unavailable")
        if time.monotonic() - started_s > TIMEOUT_S:
            return _said(503, "Service Unavailable")
        return (
            _said(500, "Internal Server Error")
            if done.error
            else response_of(json.loads(done.payload))
        )

    def _authorize(self, name: str, event: dict[str, Any]) -> dict[str, Any] | Response:
        """The context that the authorizer gives, kept for its time to live; or what is answered."""
        authorizer = self._authorizers[name]
        identity = authorizer.get("Identity", {})
        needed = [str(header).lower() for header in identity.get("Headers", ())]
        if any(not event["headers"].get(header) for header in needed):
            return _said(401, "Unauthorized")
        place = (name, *(event["headers"][header] for header in needed))
        kept_s = float(identity.get("ReauthorizeEvery", 0)) if needed else 0.0
        with self._lock:
            until_s, context = self._known.get(place, (0.0, {}))
        if time.monotonic() < until_s:
            return context
        asked = event | {
            "type": "REQUEST",
            "routeArn": f"arn:aws:execute-api:eu-central-1:{ACCOUNT}:ranklog/$default/{event['routeKey']}",
            "identitySource": list(place[1:]),
        }
        arn = str(authorizer["FunctionArn"])
        try:
            done = self._service.invoke(arn.rpartition(":")[2], json.dumps(asked).encode())
        except Throttled:
            return _said(500, "Internal Server Error")
        if done.error:
            return _said(500, "Internal Server Error")
        said = json.loads(done.payload)
        if said.get("isAuthorized") is not True:
            return _said(403, "Forbidden")
        context = said.get("context") or {}
        with self._lock:
            self._known[place] = (time.monotonic() + kept_s, context)
        return dict(context)


def _routes(template: Template, default: str | None) -> list[Route]:
    routes = []
    for name, function in template.functions().items():
        for event in function.events.values():
            if event["Type"] != "HttpApi":
                continue
            own = event["Properties"]
            chosen = own.get("Auth", {}).get("Authorizer", default)
            key = f"{str(own['Method']).upper()} {own['Path']}"
            routes.append(Route(key, name, None if chosen == "NONE" else chosen))
    return routes


def event_of(route_key: str, request: Request, parameters: Mapping[str, str]) -> dict[str, Any]:
    """A request as an event of payload format 2.0."""
    now = datetime.now(timezone.utc)
    is_text = bool(_TEXT.match(request.headers.get("content-type", "text/plain")))
    body: str | None = None
    if request.body:
        body = request.body.decode() if is_text else base64.b64encode(request.body).decode()
    query: dict[str, str] = {}
    for name, value in parse_qsl(request.query, keep_blank_values=True):
        query[name] = f"{query[name]},{value}" if name in query else value
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": route_key,
        "rawPath": unquote(request.path),
        "rawQueryString": request.query,
        "headers": {**request.headers, "x-forwarded-proto": "https", "x-forwarded-port": "443"},
        "requestContext": {
            "accountId": ACCOUNT,
            "apiId": "ranklog",
            "domainName": "ranklog.execute-api.eu-central-1.amazonaws.com",
            "domainPrefix": "ranklog",
            "http": {
                "method": request.method,
                "path": unquote(request.path),
                "protocol": "HTTP/1.1",
                "sourceIp": "127.0.0.1",
                "userAgent": request.headers.get("user-agent", ""),
            },
            "requestId": uuid.uuid4().hex[:16],
            "routeKey": route_key,
            "stage": "$default",
            "time": now.strftime("%d/%b/%Y:%H:%M:%S +0000"),
            "timeEpoch": int(now.timestamp() * 1000),
        },
        "isBase64Encoded": bool(request.body) and not is_text,
    }
    optional = {"body": body, "queryStringParameters": query, "pathParameters": dict(parameters)}
    return event | {name: value for name, value in optional.items() if value}


def response_of(answer: Mapping[str, Any]) -> Response:
    """What a function returned, as the response of a client."""
    body = str(answer.get("body") or "")
    data = base64.b64decode(body) if answer.get("isBase64Encoded") else body.encode()
    if len(data) > BODY_BYTES_MAX:
        return _said(500, "Internal Server Error")
    headers = {str(name): str(value) for name, value in (answer.get("headers") or {}).items()}
    return Response(int(answer.get("statusCode", 200)), data, headers)


def _said(status: int, message: str) -> Response:
    return Response(
        status, json.dumps({"message": message}).encode(), {"Content-Type": "application/json"}
    )
