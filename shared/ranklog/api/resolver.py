"""The router: powertools' resolver with problems for errors and one event per instance.

Powertools keeps the current event on a class, so two threads would see each other's. A Resolver
keeps its own, and a thread takes one out of a pool for as long as a request lasts.
"""

from __future__ import annotations

import logging
import queue
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError, ServiceError
from aws_lambda_powertools.event_handler.openapi.exceptions import (
    RequestUnsupportedContentType,
    RequestValidationError,
)
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from ranklog.access.grant import ADMIN, Grant
from ranklog.api.observed import Observed
from ranklog.api.problems import problem, problem_of
from ranklog.api.scopes import PUBLIC, SCOPE_OF
from ranklog.errors import RanklogError, Unauthorized

logger = logging.getLogger(__name__)

# What pydantic puts into a place beside names of members: the body, and the sides of a union. Before
# parameters it puts `query` and the name of the handler's argument.
_NO_MEMBERS = frozenset(["body", "constrained-str", "int"])


class Resolver(APIGatewayHttpResolver):
    """One request at a time. `grant` is who asks and for what; None where anyone may.

    `can_stream`: whether who called takes an answer in `parts`, which a route may set: texts that
    follow the body, each as it is ready.
    """

    def __init__(self) -> None:
        self._event: APIGatewayProxyEventV2 | None = None
        self.grant: Grant | None = None
        self.observed = Observed("")
        self.can_stream = False
        self.parts: Iterator[str] | None = None
        super().__init__(enable_validation=True)
        self.exception_handler(RanklogError)(problem_of)
        self.exception_handler(RequestValidationError)(_invalid)
        self.exception_handler(RequestUnsupportedContentType)(_unsupported)
        self.exception_handler(UnicodeDecodeError)(_no_text)
        self.exception_handler(RecursionError)(_too_deep)
        self.exception_handler(NotFoundError)(_not_found)
        self.exception_handler(ServiceError)(_service_error)
        self.exception_handler(Exception)(_internal)

    @property
    def current_event(self) -> APIGatewayProxyEventV2:  # type: ignore[override]
        """The event of this instance."""
        assert self._event is not None
        return self._event

    @property
    def tenant(self) -> str:
        """Whose request it is."""
        assert self.grant is not None
        return self.grant.tenant

    def routes(self) -> list[tuple[str, str]]:
        """(method, rule) of every route."""
        return [(route.method, route.path) for route in self._static_routes + self._dynamic_routes]

    def answer(
        self,
        event: Mapping[str, Any],
        context: Any,
        grant: Grant | None,
        observed: Observed | None = None,
    ) -> dict[str, Any]:
        """Resolve one event of who asks; `observed` is told the route, and what its answers say."""
        self._event = APIGatewayProxyEventV2(dict(event))
        self.grant = grant
        self.observed = observed or Observed("")
        self.can_stream = getattr(context, "can_stream", False)
        try:
            response = self.resolve(event, context)
            return response if self.parts is None else {**response, "parts": self.parts}
        finally:
            self._event = self.grant = self.parts = None

    def _call_route(self, route: Any, route_arguments: dict[str, str]) -> Any:
        """Once the route is known, and before a word of the request is read: may they?"""
        name = (route.method, route.path)
        known = any(route is one for one in self._static_routes + self._dynamic_routes)
        if known:
            self.observed.route = name
        try:
            if known and name not in PUBLIC:  # what is not known is a 404 in the making
                if self.grant is None:
                    raise Unauthorized("this needs a key", hint="Authorization: Bearer KEY")
                self.grant.require(SCOPE_OF.get(name, ADMIN))
        except RanklogError as error:
            return self._call_exception_handler(error, route)
        return super()._call_route(route, route_arguments)


class Pool:
    """Resolvers that are free; a new one is built where there is none."""

    def __init__(self, build: Callable[[], Resolver]) -> None:
        self._build = build
        self._free: queue.LifoQueue[Resolver] = queue.LifoQueue()

    def answer(
        self,
        event: Mapping[str, Any],
        context: Any,
        grant: Grant | None,
        observed: Observed | None = None,
    ) -> dict[str, Any]:
        """Resolve one event with a resolver that nobody else uses meanwhile."""
        try:
            resolver = self._free.get_nowait()
        except queue.Empty:
            resolver = self._build()
        try:
            return resolver.answer(event, context, grant, observed)
        finally:
            self._free.put(resolver)


def _invalid(error: RequestValidationError) -> Response[str]:
    first = error.errors()[0]
    place = first["loc"][2:] if first["loc"][:1] == ("query",) else first["loc"]
    where = ".".join(str(part) for part in place if part not in _NO_MEMBERS)
    if first["type"] == "extra_forbidden":
        detail, hint = f"unknown member {where}", "/openapi.json lists the members"
    elif first["type"] == "json_invalid":
        detail, hint = "the body is no JSON object", None
    else:
        detail, hint = f"{where or 'the body'}: {first.get('msg', first['type'])}", None
    return problem(HTTPStatus.BAD_REQUEST, detail, kind="bad_input", hint=hint)


def _unsupported(error: RequestUnsupportedContentType) -> Response[str]:
    return problem(
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        "this content type is not taken here",
        kind="bad_input",
        hint="application/json for questions, application/octet-stream for frames",
    )


def _no_text(error: UnicodeDecodeError) -> Response[str]:
    return problem(HTTPStatus.BAD_REQUEST, "the body is no UTF-8", kind="bad_input")


def _too_deep(error: RecursionError) -> Response[str]:
    return problem(HTTPStatus.BAD_REQUEST, "the body is nested too deeply", kind="bad_input")


def _not_found(error: NotFoundError) -> Response[str]:
    return problem(
        HTTPStatus.NOT_FOUND,
        "no such route",
        kind="not_found",
        hint="/openapi.json lists the routes",
    )


def _service_error(error: ServiceError) -> Response[str]:
    return problem(error.status_code, str(error.msg), kind="error")


def _internal(error: Exception) -> Response[str]:
    logger.exception("a request failed")
    return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "internal error", kind="error")
