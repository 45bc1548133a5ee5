"""The compiled form of what runs for every line and value, where it was built (`hot/`, in C).

What it reads are fields of the ring, of calls, of the producer and of the handler. Their classes
inherit them: from C, or from the classes below. It does what is usual and calls the Python form for
all else, which writes the same bytes and is all there is where it was not built: without a compiler,
before CPython 3.11 and after 3.13, without its lock, on another interpreter, or with `RANKLOG_COMPILED=0`.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

# Of what Python and C know of each other: hot.h has it too. In a checkout what was compiled may be old.
VERSION = 1
# Where the interpreter is given away only behind a call and at a jump backwards; see ring.py.
FILLED_BEFORE_ANYBODY_ELSE_RUNS = (
    sys.version_info >= (3, 11) and getattr(sys, "_is_gil_enabled", lambda: True)()
)


def _found() -> Any:
    """The compiled module, or None."""
    if os.environ.get("RANKLOG_COMPILED") == "0" or not FILLED_BEFORE_ANYBODY_ELSE_RUNS:
        return None
    try:
        from ranklog.produce import _hot
    except ImportError:
        return None
    return _hot if getattr(_hot, "VERSION", 0) == VERSION else None


hot = _found()


class _RingFields:
    """`head`, limits, `offset` and `lap` are for who writes without calls: see `Ring`."""

    __slots__ = (
        "head",
        "inline_limit",
        "lap",
        "limit",
        "memory",
        "offset",
        "records",
        "reserve_limit",
    )

    def attach(self, memory: Any) -> None:
        """Write into this memory from now on."""
        self.memory = memory

    def detach(self) -> None:
        """Let go of the memory."""


class _CallFields:
    __slots__ = (
        "arguments_word",
        "code",
        "file",
        "function",
        "instruction",
        "level",
        "line",
        "logger",
        "owner",
        "site",
        "template",
        "text_word",
    )


class _ProducerFields:
    """`ring`, `owner` of the stamps whose numbers are known, and what telemetry was told."""

    ring: Any
    owner: object
    doubles: dict[str, int]
    last_series: tuple[Any, int]

    def forget_known(self) -> None:
        """Their numbers mean nothing any more."""


class _HandlerFields:
    producer: Any
    handlers_seen: int


if TYPE_CHECKING:
    from ranklog.produce._hot import CallFields as CallFields
    from ranklog.produce._hot import HandlerFields as HandlerFields
    from ranklog.produce._hot import ProducerFields as ProducerFields
    from ranklog.produce._hot import RingFields as RingFields
elif hot is not None:
    CallFields, HandlerFields = hot.CallFields, hot.HandlerFields
    ProducerFields, RingFields = hot.ProducerFields, hot.RingFields
else:
    CallFields, HandlerFields = _CallFields, _HandlerFields
    ProducerFields, RingFields = _ProducerFields, _RingFields
