"""TorchTitan's structured logger: its spans, instants and scalars, with their step.

`TITAN_STRUCT_LOGGER_HANDLERS=ranklog.frameworks.titan.register_handler`, or beside its own, after a
comma (with the variable set, only what it names is registered).
"""

from __future__ import annotations

import logging
from typing import Any

import ranklog

# What a scalar's record calls itself; its name and value stand in the record.
_SCALAR = "metric_value"


class TitanHandler(logging.Handler):
    """Scalars are telemetry; the rest are lines, whose metadata are the record's own fields."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self._source = source
        self._step: int | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """A record of the structured logger. Its step is the process's iteration from here on."""
        step = getattr(record, "step", None)
        if isinstance(step, int) and step != self._step:
            self._step = step
            ranklog.iteration(step)
        name, value = getattr(record, "event_name", None), getattr(record, "value", None)
        is_scalar = getattr(record, "log_type_name", None) == _SCALAR
        if is_scalar and isinstance(name, str) and isinstance(value, (int, float)):
            ranklog.telemetry({name: value}, source=self._source)
        else:
            ranklog.handler().handle(record)


def register_handler(
    *, structured_logger: logging.Logger, rank: int, source: str, output_dir: str, **more: Any
) -> None:
    """The factory that TorchTitan calls once per process. Starts ranklog where nothing has.

    `rank` is that of a mesh and may not be the process's: the launcher's is taken.
    """
    ranklog.init()
    structured_logger.addHandler(TitanHandler(source))
