"""Requests made from /openapi.json itself: nothing is our fault, and answers are as they are described."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import openapi
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance

from ranklog.api.local import make_handler
from ranklog.api.serve import make_server
from ranklog.store.memory import MemoryStore
from tests.api.job import NOW_NS, call, frame_of

EXAMPLES = 12
PATHS = sorted(
    (method.upper(), path)
    for path, methods in call(make_handler(MemoryStore()), "GET", "/openapi.json")[1][
        "paths"
    ].items()
    for method in methods
)


@pytest.fixture(scope="module")
def schema() -> Iterator[Any]:
    api = make_handler(MemoryStore(), clock_ns=lambda: NOW_NS)
    headers = {"content-type": "application/octet-stream"}
    assert call(api, "POST", "/v1/frames", frame_of(), headers=headers)[0] == 202
    server = make_server(api, host="127.0.0.1", port=0)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield openapi.from_url(f"http://127.0.0.1:{server.server_address[1]}/openapi.json")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.sockets
@pytest.mark.parametrize(("method", "path"), PATHS)
def test_a_route_answers_what_its_description_allows(schema: Any, method: str, path: str) -> None:
    operation = schema[path][method]

    @given(operation.as_strategy())
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        phases=[Phase.generate],
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    def answered(case: Any) -> None:
        if path == "/v1/tail" and isinstance(case.query, dict):
            case.query["wait"] = 0
        response = case.call()
        case.validate_response(response, checks=[not_a_server_error, response_schema_conformance])

    answered()
