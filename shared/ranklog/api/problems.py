"""Errors as `application/problem+json` (RFC 9457)."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.event_handler import Response

from ranklog.errors import RanklogError

PROBLEM = "application/problem+json"
# What a client that is asked to slow down waits.
RETRY_AFTER_S = 2


def problem_of(error: RanklogError) -> Response[str]:
    """The response to an error; `kind`, `hint` and `position` are members of ours."""
    headers: dict[str, Any] = {}
    if error.retryable:
        headers["Retry-After"] = str(getattr(error, "retry_after_s", RETRY_AFTER_S))
    if error.http_status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    return problem(
        error.http_status,
        error.message,
        kind=error.kind,
        hint=error.hint,
        position=error.position,
        headers=headers,
    )


def problem(
    status: int,
    detail: str,
    *,
    kind: str,
    hint: str | None = None,
    position: int | None = None,
    headers: dict[str, Any] | None = None,
) -> Response[str]:
    """A problem from its parts."""
    body = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "kind": kind,
        "hint": hint,
        "position": position,
    }
    return Response(status, PROBLEM, json.dumps(body, ensure_ascii=False), headers=headers)
