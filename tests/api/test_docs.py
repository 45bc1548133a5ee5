"""docs/http-api.md names every route and member that there is, and the description has them too."""

from __future__ import annotations

from pathlib import Path

from ranklog.api import models
from ranklog.api.local import make_handler
from ranklog.store.memory import MemoryStore
from tests.api.job import call

PAGE = (Path(__file__).parents[2] / "docs" / "http-api.md").read_text()


def test_every_route_is_in_the_docs_and_no_other() -> None:
    described = call(make_handler(MemoryStore()), "GET", "/openapi.json")[1]
    routes = {
        f"`{method.upper()} {path}`"
        for path, methods in described["paths"].items()
        for method in methods
    }
    rows = [line.split("|")[1].strip() for line in PAGE.splitlines() if line.startswith("| `")]
    assert set(rows) == routes


def test_every_member_of_a_body_is_in_the_docs() -> None:
    for model in (models.SearchBody, models.CountBody, models.CompareBody, models.ExportBody):
        for name, field in model.model_fields.items():
            assert (field.alias or name) in PAGE, f"{model.__name__}.{name}"
