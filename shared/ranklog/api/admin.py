"""Routes of administration: the calls of `ranklog.admin`, each for who has its scope."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Query

from ranklog.admin import Admin
from ranklog.admin.local import LocalAdmin
from ranklog.api import admin_models as models
from ranklog.api.answers import respond_text
from ranklog.api.models import Restrictions, RunsParameters
from ranklog.api.parameters import refuse_unknown
from ranklog.api.resolver import Resolver
from ranklog.errors import BadInput, NotFound, TooLarge
from ranklog.limits import API_AUDIT_BYTES_MAX, QUARANTINE_REPLAY_MAX, RESPONSE_BYTES_MAX
from ranklog.plan.times import parse_duration
from ranklog.store.protocol import Store

Answers = Callable[[type[Any], str], dict[int, Any]]
_NO_RULE = "none"


def admin_of(store: Store, tenant: str) -> Admin:
    """Administration of a tenant as one request may have it: no work without an end."""
    return LocalAdmin(
        store, tenant, audit_bytes_max=API_AUDIT_BYTES_MAX, replay_max=QUARANTINE_REPLAY_MAX
    )


def add_admin(app: Resolver, admin_of: Callable[[str], Admin] | None, answers: Answers) -> None:
    """All of them; without `admin_of` they say that nothing is administered here."""

    def admin() -> Admin:
        if admin_of is None:
            raise NotFound("this API administers nothing", hint="use the store: --store URL")
        return admin_of(app.tenant)

    def who(claimed: str) -> str:
        """The key, which is proven, and whom it says that it acts for."""
        key = f"key {app.grant.key_id}" if app.grant and app.grant.key_id else "api"
        return f"{key} for {claimed}" if claimed else key

    _add_deletion(app, admin, who, answers)
    _add_retention(app, admin, who, answers)
    _add_quarantine(app, admin, who, answers)

    @app.get("/v1/usage", responses=answers(models.UsageAnswer, "what is stored and asked"))
    def usage(asked: Annotated[RunsParameters, Query()]) -> Response[str]:
        refuse_unknown(app, RunsParameters)
        return _respond(admin().usage(asked.model_dump(exclude_none=True)))  # type: ignore[arg-type]


def _add_deletion(
    app: Resolver, admin: Callable[[], Admin], who: Callable[[str], str], answers: Answers
) -> None:
    @app.post("/v1/delete", responses=answers(models.DeleteAnswer, "what is deleted"))
    def delete(body: Annotated[models.DeleteBody, Body()]) -> Response[str]:
        names = set(Restrictions.model_fields) - {"query", "full_scan"}
        given: Any = body.model_dump(include=names, exclude_none=True)
        found = admin().delete(
            body.query,
            given,
            who=who(body.who),
            why=body.why,
            groups=body.groups,
            dry_run=body.dry_run,
        )
        return _respond(found)

    @app.get("/v1/audit", responses=answers(models.AuditAnswer, "what became of frames"))
    def audit(asked: Annotated[models.AuditParameters, Query()]) -> Response[str]:
        refuse_unknown(app, models.AuditParameters)
        return _respond(admin().audit(asked.run, everything=asked.all))

    @app.get("/v1/actions", responses=answers(models.ActionsAnswer, "the log of actions"))
    def actions() -> Response[str]:
        return _respond(admin().actions())


def _add_retention(
    app: Resolver, admin: Callable[[], Admin], who: Callable[[str], str], answers: Answers
) -> None:
    @app.get("/v1/retention", responses=answers(models.RulesAnswer, "how long lines are kept"))
    def retention() -> Response[str]:
        return _respond(admin().retention())

    @app.post("/v1/retention", responses=answers(models.RulesAnswer, "how long lines are kept"))
    def set_retention(body: Annotated[models.RetentionBody, Body()]) -> Response[str]:
        keep_ns = None if body.keep == _NO_RULE else _span(body.keep)
        found = admin().set_retention(body.run, keep_ns, who=who(body.who), why=body.why)
        return _respond(found)

    @app.post("/v1/retention/apply", responses=answers(models.AppliedAnswer, "what was let go of"))
    def apply(body: Annotated[models.ApplyBody, Body()]) -> Response[str]:
        found = admin().apply_retention(who=who(body.who), why=body.why, dry_run=body.dry_run)
        return _respond(found)


def _add_quarantine(
    app: Resolver, admin: Callable[[], Admin], who: Callable[[str], str], answers: Answers
) -> None:
    @app.get("/v1/quarantine", responses=answers(models.QuarantineAnswer, "what was set aside"))
    def quarantine(asked: Annotated[models.QuarantineParameters, Query()]) -> Response[str]:
        refuse_unknown(app, models.QuarantineParameters)
        if asked.id is None:
            return _respond(admin().quarantine())
        return _respond({"entries": [admin().quarantined(asked.id)]})

    @app.post(
        "/v1/quarantine/replay", responses=answers(models.ReplayAnswer, "what is stored by now")
    )
    def replay(body: Annotated[models.ReplayBody, Body()]) -> Response[str]:
        return _respond(admin().replay(body.ids, who=who(body.who)))


def _span(text: str) -> int:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise BadInput(f"to keep lines for how long? {text}", hint="90d, 36h or none") from error


def _respond(found: dict[str, Any]) -> Response[str]:
    body = json.dumps(found, ensure_ascii=False, allow_nan=False)
    size = len(body.encode("utf-8", "surrogatepass"))
    if size > RESPONSE_BYTES_MAX:
        raise TooLarge(
            f"the answer has {size} bytes, limit {RESPONSE_BYTES_MAX}",
            hint="ask for a run, or ask the store",
        )
    return respond_text(body)
