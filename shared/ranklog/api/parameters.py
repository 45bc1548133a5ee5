"""Parameters of a GET."""

from __future__ import annotations

from pydantic import BaseModel

from ranklog.api.resolver import Resolver
from ranklog.errors import BadInput


def refuse_unknown(app: Resolver, model: type[BaseModel]) -> None:
    """As strictly as members of a body. Raises BadInput."""
    known = {field.alias or name for name, field in model.model_fields.items()}
    unknown = sorted(app.current_event.query_string_parameters.keys() - known)
    if unknown:
        raise BadInput(f"unknown parameter {unknown[0]}", hint="/openapi.json lists them")
