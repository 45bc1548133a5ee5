"""Functions as Lambda loads them: a fresh module, its environment, an event, a context."""

from __future__ import annotations

import importlib.util
import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Context:
    """What the functions' logger reads of Lambda's context."""

    function_name: str
    remaining_ms: int = 29_000
    memory_limit_in_mb: int = 1769
    aws_request_id: str = "00000000-0000-0000-0000-000000000000"

    def get_remaining_time_in_millis(self) -> int:
        return self.remaining_ms

    @property
    def invoked_function_arn(self) -> str:
        return f"arn:aws:lambda:eu-central-1:123456789012:function:{self.function_name}"


Load = Callable[..., Callable[[dict[str, Any]], Any]]


def _loader(patch: pytest.MonkeyPatch) -> Load:
    def load(name: str, **environment: str) -> Callable[[dict[str, Any]], Any]:
        for variable, value in environment.items():
            patch.setenv(variable, value)
        # Powertools keeps a logger with its output by the service's name.
        logging.Logger.manager.loggerDict.pop(name, None)
        path = ROOT / "functions" / name / "app.py"
        spec = importlib.util.spec_from_file_location(f"function_{name}", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)

        def call(event: dict[str, Any], remaining_ms: int = 29_000) -> Any:
            context = Context(name, remaining_ms)
            return json.loads(json.dumps(module.handler(json.loads(json.dumps(event)), context)))

        call.module = module  # type: ignore[attr-defined]
        return call

    return load


@pytest.fixture
def load_function(monkeypatch: pytest.MonkeyPatch) -> Load:
    """load_function(name, RANKLOG_STORE=…) is a cold start; it returns a call with JSON both ways."""
    return _loader(monkeypatch)


@pytest.fixture(scope="module")
def load_functions() -> Iterator[Load]:
    """The same for all tests of a module together."""
    with pytest.MonkeyPatch.context() as patch:
        yield _loader(patch)


@pytest.fixture
def read_event() -> Callable[[str], dict[str, Any]]:
    """An event of the folder `events`, by its name."""

    def read(name: str) -> dict[str, Any]:
        event: dict[str, Any] = json.loads((ROOT / "events" / f"{name}.json").read_text())
        return event

    return read
