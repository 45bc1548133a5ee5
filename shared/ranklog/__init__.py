"""Logging for distributed training: every rank's lines, in one place, searchable.

In a training job: `init`, then log as you do. To read: `Client`. Importing this is light; the
client and what it needs are imported when first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ranklog._version import VERSION as __version__
from ranklog.produce.bridges import loguru_sink, structlog_processor
from ranklog.produce.context import Handle, context, iteration, phase
from ranklog.produce.session import attach, close, flush, handler, init, log
from ranklog.produce.telemetry import telemetry

if TYPE_CHECKING:
    from ranklog.client import Client as Client

__all__ = [
    "Client",
    "Handle",
    "__version__",
    "attach",
    "close",
    "context",
    "flush",
    "handler",
    "init",
    "iteration",
    "log",
    "loguru_sink",
    "phase",
    "structlog_processor",
    "telemetry",
]


def __getattr__(name: str) -> Any:
    if name == "Client":
        from ranklog.client import Client

        return Client
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
