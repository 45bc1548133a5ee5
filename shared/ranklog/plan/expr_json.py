"""Query trees as JSON values, for payloads between functions."""

from __future__ import annotations

from typing import Any, cast

from ranklog.model.query import Expr
from ranklog.plan.tasks import EXPR_CODEC


def expr_to_json(expr: Expr) -> Any:
    """A JSON value: `{"And": [[{"Contains": ["loss"]}, …]]}`."""
    return EXPR_CODEC.to_json(expr)


def expr_from_json(value: Any) -> Expr:
    """The inverse. Raises NewerVersion at a node this version does not know, Corrupt at others."""
    return cast(Expr, EXPR_CODEC.from_json(value))
