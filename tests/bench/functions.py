"""A function as Lambda loads it: a fresh module, its environment, an event, a context."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Context:
    """What the functions read of Lambda's context."""

    function_name: str
    memory_limit_in_mb: int = 1769
    aws_request_id: str = "00000000-0000-0000-0000-000000000000"

    @property
    def invoked_function_arn(self) -> str:
        return f"arn:aws:lambda:eu-central-1:123456789012:function:{self.function_name}"

    def get_remaining_time_in_millis(self) -> int:
        return 600_000


def load_handler(name: str) -> Callable[[Any], Any]:
    """The handler of `functions/<name>/app.py`, to be called with an event."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "functions" / name / "app.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return lambda event: module.handler(event, Context(name))
