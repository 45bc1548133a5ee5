"""The routes: decode, one call of the client, encode.

`make_api(settings)` gives `handler(event, context)` for API Gateway events (HTTP API, payload 2.0).
"""

from __future__ import annotations

import base64
import binascii
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Annotated, Any
from urllib.parse import unquote

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Path, Query
from pydantic import BaseModel

from ranklog._version import VERSION
from ranklog.access.grant import Grant
from ranklog.access.meter import INGESTED, REQUESTS, SCANNED, Meter
from ranklog.api import models
from ranklog.api.admin import add_admin
from ranklog.api.answers import (
    NDJSON,
    OCTETS,
    respond_lines,
    respond_rows,
    respond_tail,
    respond_text,
    wants_ndjson,
)
from ranklog.api.caller import grant_of
from ranklog.api.metered import metered
from ranklog.api.observed import Observed, begin, watched
from ranklog.api.parameters import refuse_unknown
from ranklog.api.problems import PROBLEM, problem_of
from ranklog.api.resolver import Pool, Resolver
from ranklog.api.scopes import PUBLIC
from ranklog.api.series import respond_series, stream_series
from ranklog.api.settings import Settings
from ranklog.client import Client
from ranklog.errors import (
    BadInput,
    Corrupt,
    Forbidden,
    NewerVersion,
    NotFound,
    OverQuota,
    RanklogError,
    TooLarge,
)
from ranklog.ingest.records import read_record
from ranklog.limits import QUERY_LIMIT_DEFAULT, REQUEST_BYTES_MAX
from ranklog.model.record import Record
from ranklog.stream.frames import peek_header

Handler = Callable[[dict[str, Any], Any], dict[str, Any]]

FORM = "application/x-www-form-urlencoded"
_PUBLIC_PATHS = frozenset(path for _, path in PUBLIC)
# What a request uses most, where that is not what it scans; who has used it all up may see so.
_KINDS = {"/v1/frames": INGESTED, "/v1/usage": REQUESTS}
_RESPONSES: dict[int, Any] = {
    400: {"description": "can't be used as it is", "content": {PROBLEM: {"model": models.Problem}}},
    401: {"description": "no key", "content": {PROBLEM: {"model": models.Problem}}},
    403: {"description": "not with this key", "content": {PROBLEM: {"model": models.Problem}}},
    404: {"description": "nothing by that name", "content": {PROBLEM: {"model": models.Problem}}},
}


def make_api(settings: Settings) -> Handler:
    """The handler of one set of settings. Threads may share it."""
    pool = Pool(lambda: build_resolver(settings))

    def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
        try:
            event = _checked(event)
            public = event.get("rawPath") in _PUBLIC_PATHS
            grant = None if public else grant_of(event, settings)
        except RanklogError as error:
            return _refused(error)
        observed = begin(event, context)
        if grant is None:
            return pool.answer(event, context, grant, observed)
        with _observing(settings, observed, grant):
            response = _metered(settings.meter, pool, event, context, grant, observed)
            observed.status = int(response["statusCode"])
        return response

    return handler


@contextmanager
def _observing(settings: Settings, observed: Observed, grant: Grant) -> Iterator[None]:
    """Tell who observes of a tenant's request and how it turned out."""
    observed.tenant = grant.tenant
    if settings.begun is not None:
        settings.begun(observed)
    started_s = time.perf_counter()
    yield
    observed.ms = (time.perf_counter() - started_s) * 1000
    if settings.observe is not None:
        settings.observe(observed)


def _metered(
    meter: Meter | None,
    pool: Pool,
    event: dict[str, Any],
    context: Any,
    grant: Grant,
    observed: Observed,
) -> dict[str, Any]:
    if meter is None:
        return pool.answer(event, context, grant, observed)
    kind = _KINDS.get(event.get("rawPath", ""), SCANNED)
    try:
        with meter.admitted(grant.tenant, kind):
            return pool.answer(event, context, grant, observed)
    except OverQuota as error:
        return _refused(error)


def _refused(error: RanklogError) -> dict[str, Any]:
    refused = problem_of(error)
    return {
        "statusCode": refused.status_code,
        "headers": {"Content-Type": PROBLEM, **refused.headers},
        "body": refused.body,
        "isBase64Encoded": False,
    }


def _checked(event: dict[str, Any]) -> dict[str, Any]:
    """An event whose body is within the limit; a POST without a body has an empty question.

    `curl -d` calls any body a form: there are no forms here, so it is taken for JSON.
    """
    body = event.get("body") or ""
    size = len(body) * 3 // 4 if event.get("isBase64Encoded") else len(body)
    if size > REQUEST_BYTES_MAX:
        raise TooLarge(f"a body of {size} bytes, limit {REQUEST_BYTES_MAX}")
    method = event.get("requestContext", {}).get("http", {}).get("method")
    if method != "POST" or event.get("rawPath") == "/v1/frames":
        return event
    headers = {name.lower(): value for name, value in (event.get("headers") or {}).items()}
    if str(headers.get("content-type", "")).startswith(FORM):
        event = {**event, "headers": {**headers, "content-type": "application/json"}}
    return event if body else {**event, "body": "{}", "isBase64Encoded": False}


def build_resolver(settings: Settings) -> Resolver:
    """All routes of the API; each needs its scope."""
    app = Resolver()

    def client() -> Client:
        found = settings.client_of(app.tenant)
        if settings.meter is not None:
            found = metered(found, settings.meter, app.tenant)
        return watched(found, app.observed)

    _add_reading(app, client)
    _add_bulk(app, client)
    _add_analyses(app, client)
    _add_listings(app, client)
    _add_frames(app, settings)
    add_admin(app, settings.admin_of, _answers)

    @app.get("/v1/health", responses={200: _content(models.Health, "it is there")})
    def health() -> Response[str]:
        return respond_text(json.dumps({"status": "ok", "version": VERSION}))

    @app.get("/openapi.json", include_in_schema=False)
    def openapi() -> Response[str]:
        schema = app.get_openapi_json_schema(
            title="ranklog",
            version=VERSION,
            description="Logs of distributed training: search, compare, ingest.",
        )
        return respond_text(schema)

    return app


def _add_reading(app: Resolver, client: Callable[[], Client]) -> None:
    @app.post("/v1/search", responses=_answers(models.SearchAnswer, "a page of lines"))
    def search(body: Annotated[models.SearchBody, Body()]) -> Response[str]:
        shape: dict[str, Any] = {"timeout_s": body.timeout, "fields": body.fields}
        asked = _asked(body)
        limit = QUERY_LIMIT_DEFAULT if body.limit is None else body.limit or None
        if body.pin is True:
            first = client().search(**asked | {"explain": True}, limit=limit, pin=True)
            asked = {"pin": (first.pin or {}).get("id")}
        elif isinstance(body.pin, str):
            asked = {**asked, "pin": body.pin}
            limit = body.limit or None

        def page(most: int | None) -> Any:
            if "pin" in asked and most == QUERY_LIMIT_DEFAULT:
                most -= 1  # this one would mean the pin's own
            return client().search(**asked, **shape, limit=most)

        return respond_lines(page, limit, app.current_event.headers)

    @app.post("/v1/count", responses=_answers(models.Rows, "counts"))
    def count(body: Annotated[models.CountBody, Body()]) -> Response[str]:
        answer = client().count(
            body.query,
            **_restrictions(body),
            by=body.by,
            every=body.every,
            top=body.top,
            stats=body.stats,
            explain=body.explain,
            full_scan=body.full_scan,
            timeout_s=body.timeout,
        )
        return respond_rows(answer.to_json(), "groups", app.current_event.headers)


def _add_bulk(app: Resolver, client: Callable[[], Client]) -> None:
    """What may be long: answered in pages, or as it is ready."""

    @app.post("/v1/series", responses=_answers(models.SeriesPage, "series"))
    def series(body: Annotated[models.SeriesBody, Body()]) -> Response[str]:
        asked = _series_words(body)
        headers = app.current_event.headers
        if app.can_stream and wants_ndjson(headers) and body.cursor is None:
            app.parts = stream_series(client().stream_series(**asked), columns=body.columns)
            return respond_text("", NDJSON)
        return respond_series(
            client().series(**asked), headers, columns=body.columns, behind=body.cursor
        )

    @app.post("/v1/export", responses=_answers(models.Rows, "lines, one each"))
    def export(body: Annotated[models.ExportBody, Body()]) -> Response[str]:
        def page(limit: int | None) -> Any:
            return client().search(
                body.query,
                **_restrictions(body),
                limit=limit,
                order="oldest",
                cursor=body.cursor,
                groups=False,
                full_scan=body.full_scan,
            )

        return respond_lines(page, None, app.current_event.headers, export=body.format)


def _add_analyses(app: Resolver, client: Callable[[], Client]) -> None:
    @app.post("/v1/compare", responses=_answers(models.Rows, "hunks"))
    def compare(body: Annotated[models.CompareBody, Body()]) -> Response[str]:
        if body.run is None:
            raise BadInput("ranks of which run?", hint='"run" and "ranks" or "with"')
        listing = client().compare(
            body.query,
            **_restrictions(body),
            ranks=body.ranks,
            with_=body.with_,
            all_hunks=body.all,
            limit=body.limit or None,
        )
        return respond_rows(listing.to_json("hunks"), "hunks", app.current_event.headers)

    @app.post("/v1/missing", responses=_answers(models.Rows, "who did not say it"))
    def missing(body: Annotated[models.MissingBody, Body()]) -> Response[str]:
        found = client().missing(body.query, **_restrictions(body), by=body.by, everyone=body.all)
        return respond_rows(found.to_json("missing"), "missing", app.current_event.headers)

    @app.post("/v1/outliers", responses=_answers(models.OutliersAnswer, "ranks that deviate"))
    def outliers(body: Annotated[models.OutliersBody, Body()]) -> Response[str]:
        if body.run is None:
            raise BadInput("outliers of which run?", hint='"run"')
        found = client().outliers(body.query, **_restrictions(body))
        return respond_rows(found.to_json(), "outliers", app.current_event.headers)

    @app.post("/v1/triage", responses=_answers(models.TriageAnswer, "what happened to a run"))
    def triage(body: Annotated[models.TriageBody, Body()]) -> Response[str]:
        if body.run is None:
            raise BadInput("triage of which run?", hint='"run"')
        found = client().triage(body.query, **_restrictions(body))
        return respond_text(json.dumps(found.to_json(), ensure_ascii=False, allow_nan=False))

    @app.post("/v1/stacks", responses=_answers(models.StacksAnswer, "ranks by their stacks"))
    def stacks(body: Annotated[models.StacksBody, Body()]) -> Response[str]:
        if body.run is None:
            raise BadInput("stacks of which run?", hint='"run"')
        found = client().stacks(body.query, thread=body.thread, **_restrictions(body))
        return respond_rows(found.to_json(), "groups", app.current_event.headers)


def _add_listings(app: Resolver, client: Callable[[], Client]) -> None:
    @app.get("/v1/runs", responses=_answers(models.Rows, "runs"))
    def runs(asked: Annotated[models.RunListParameters, Query()]) -> Response[str]:
        refuse_unknown(app, models.RunListParameters)
        listing = client().runs(**_given(asked))
        return respond_rows(listing.to_json("runs"), "runs", app.current_event.headers)

    @app.get("/v1/runs/<run>/streams", responses=_answers(models.Rows, "streams"))
    def streams(
        run: Annotated[str, Path()], asked: Annotated[models.StreamsParameters, Query()]
    ) -> Response[str]:
        refuse_unknown(app, models.StreamsParameters)
        listing = client().streams(unquote(run), **_given(asked))
        return respond_rows(listing.to_json("streams"), "streams", app.current_event.headers)

    @app.get("/v1/callsites", responses=_answers(models.Rows, "call sites"))
    def callsites(asked: Annotated[models.CallSitesParameters, Query()]) -> Response[str]:
        refuse_unknown(app, models.CallSitesParameters)
        listing = client().callsites(**_given(asked))
        return respond_rows(listing.to_json("callsites"), "callsites", app.current_event.headers)

    @app.get("/v1/patterns", responses=_answers(models.Rows, "templates"))
    def patterns(asked: Annotated[models.PatternsParameters, Query()]) -> Response[str]:
        refuse_unknown(app, models.PatternsParameters)
        listing = client().patterns(**_given(asked))
        return respond_rows(listing.to_json("patterns"), "patterns", app.current_event.headers)

    @app.get(
        "/v1/slo", responses=_answers(models.SloAnswer, "objectives, and how well they are met")
    )
    def slo(asked: Annotated[models.SloParameters, Query()]) -> Response[str]:
        refuse_unknown(app, models.SloParameters)
        return respond_text(json.dumps(client().slo(**_given(asked)).to_json()))

    @app.get("/v1/tail", responses=_answers(models.TailAnswer, "what became visible"))
    def tail(asked: Annotated[models.TailParameters, Query()]) -> Response[str]:
        refuse_unknown(app, models.TailParameters)
        given = _given(asked)
        wait_s, rows = given.pop("wait"), given.pop("limit")

        def page(rows: int) -> Any:
            return client().tail_page(**given, wait_s=wait_s, rows=rows)

        return respond_tail(page, rows, app.current_event.headers)


def _add_frames(app: Resolver, settings: Settings) -> None:
    @app.post("/v1/frames", responses=_RESPONSES | {202: {"description": "kept for good"}})
    def frames() -> Response[str]:
        if settings.sink is None:
            raise NotFound("this API takes no frames")
        data = _octets(app.current_event.raw_event)
        try:
            tenant = peek_header(data).header.tenant
        except (Corrupt, NewerVersion) as error:
            raise BadInput(f"the body is no frame: {error.message}", hint=error.hint) from error
        if tenant != app.tenant:
            raise Forbidden("the frame is another tenant's")
        _check_frame(data)
        settings.sink.accept(app.tenant, data)
        if settings.meter is not None:
            settings.meter.add(app.tenant, INGESTED, len(data))
        return Response(HTTPStatus.ACCEPTED, "application/json", '{"accepted": 1}')


def _check_frame(data: bytes) -> None:
    """Refuse what ingest would set aside, while the sender has its own copy. Raises BadInput, TooLarge."""
    try:
        read_record(Record(data, 0, ""))
    except (Corrupt, NewerVersion) as error:
        raise BadInput(f"the frame can't be read: {error.message}", hint=error.hint) from error


def _octets(event: Mapping[str, Any]) -> bytes:
    body = event.get("body") or ""
    if not event.get("isBase64Encoded"):
        raise BadInput("a frame is bytes", hint=f"Content-Type: {OCTETS}")
    try:
        return base64.b64decode(body, validate=True)
    except (ValueError, binascii.Error) as error:
        raise BadInput("the body is no base64") from error


def _asked(body: models.SearchBody) -> dict[str, Any]:
    """The question of a search, without how long its answer may be."""
    return {
        "query": body.query,
        **_restrictions(body),
        "order": body.order,
        "cursor": body.cursor,
        "context": body.context,
        "explain": body.explain,
        "full_scan": body.full_scan,
    }


def _series_words(body: models.SeriesBody) -> dict[str, Any]:
    return {
        "query": body.query,
        **_restrictions(body),
        "by": body.by,
        "every": body.every,
        "aggregate": body.aggregate,
        "max_points": body.max_points,
        "stat": body.stat,
        "detect": body.detect,
        "superseded": body.superseded,
        "timeout_s": body.timeout,
    }


def _restrictions(body: models.Restrictions) -> dict[str, Any]:
    names = models.Restrictions.model_fields.keys() - {"query", "full_scan"}
    return body.model_dump(include=set(names), exclude_none=True)


def _given(asked: BaseModel) -> dict[str, Any]:
    return asked.model_dump(exclude_none=True)


def _content(model: type[BaseModel], description: str) -> Any:
    return {"description": description, "content": {"application/json": {"model": model}}}


def _answers(model: type[BaseModel], description: str) -> dict[int, Any]:
    return _RESPONSES | {200: _content(model, description)}
