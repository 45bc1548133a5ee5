"""Logging for distributed training: every rank's lines, in one place, searchable.

In a training job: `init`, then log as you do. To read: `Client`. Importing this is light: what a
name needs is imported when it is first asked for.
"""

from __future__ import annotations

from ranklog._version import VERSION as __version__

TYPE_CHECKING = False  # typing's, without typing
if TYPE_CHECKING:
    from typing import Any

    from ranklog.client import Client as Client
    from ranklog.hardware.monitor import monitor as monitor
    from ranklog.mirrors.mirror import mirror as mirror
    from ranklog.mirrors.writer import SummaryWriter as SummaryWriter
    from ranklog.produce.bridges import loguru_sink as loguru_sink
    from ranklog.produce.bridges import structlog_processor as structlog_processor
    from ranklog.produce.context import Handle as Handle
    from ranklog.produce.context import context as context
    from ranklog.produce.context import iteration as iteration
    from ranklog.produce.modules import watch as watch
    from ranklog.produce.phases import phase as phase
    from ranklog.produce.phases import timer as timer
    from ranklog.produce.session import attach as attach
    from ranklog.produce.session import close as close
    from ranklog.produce.session import flush as flush
    from ranklog.produce.session import handler as handler
    from ranklog.produce.session import init as init
    from ranklog.produce.session import log as log
    from ranklog.produce.telemetry import telemetry as telemetry
    from ranklog.produce.tensors import tensor as tensor

__all__ = [
    "Client",
    "Handle",
    "SummaryWriter",
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
    "mirror",
    "monitor",
    "phase",
    "structlog_processor",
    "telemetry",
    "tensor",
    "timer",
    "watch",
]

_HOMES = {
    "ranklog.client": ["Client"],
    "ranklog.hardware.monitor": ["monitor"],
    "ranklog.mirrors.mirror": ["mirror"],
    "ranklog.mirrors.writer": ["SummaryWriter"],
    "ranklog.produce.bridges": ["loguru_sink", "structlog_processor"],
    "ranklog.produce.context": ["Handle", "context", "iteration"],
    "ranklog.produce.modules": ["watch"],
    "ranklog.produce.phases": ["phase", "timer"],
    "ranklog.produce.session": ["attach", "close", "flush", "handler", "init", "log"],
    "ranklog.produce.telemetry": ["telemetry"],
    "ranklog.produce.tensors": ["tensor"],
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            found = globals()[name] = getattr(__import__(home, fromlist=[name]), name)
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
