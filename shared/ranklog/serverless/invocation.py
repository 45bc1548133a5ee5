"""What every function does around its handler: a structured log with whose work it is, tracing, no words of anybody's.

Each line of a function's log names `tenant`, `run` and `query_id`, null where there is none (yet). Texts of
exceptions are left out, as they may quote a line or a question: an exception is its type and where it
was raised. What escapes a handler is raised anew without its text, since Lambda logs that, too.
"""

from __future__ import annotations

import functools
import logging
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

from aws_lambda_powertools import Logger
from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter

from ranklog.errors import BadInput
from ranklog.serverless.tracing import traced

A = TypeVar("A")
Handler = Callable[[dict[str, Any], Any], A]

NOBODYS: dict[str, Any] = {"tenant": None, "run": None, "query_id": None}


class Failed(RuntimeError):
    """A handler's exception, by its type: its text is nobody's to log."""


class _Formatter(LambdaPowertoolsFormatter):
    """Without texts of exceptions; null stays, so that a line names what it is not about."""

    def formatException(self, ei: Any) -> str:
        return "\n".join(
            f"{frame.filename}:{frame.lineno} in {frame.name}"
            for frame in traceback.extract_tb(ei[2])
        )

    def _serialize_stacktrace(self, log_record: logging.LogRecord) -> None:
        """It would have the text."""

    def _extract_log_exception(self, log_record: logging.LogRecord) -> Any:
        text, name, _ = super()._extract_log_exception(log_record)
        return text, name, None

    @staticmethod
    def _strip_none_records(records: dict[str, Any]) -> dict[str, Any]:
        return {
            name: value for name, value in records.items() if value is not None or name in NOBODYS
        }


def function_logger(service: str) -> Logger:
    """The function's logger. What ranklog itself logs goes the same way."""
    logger = Logger(service=service, logger_formatter=_Formatter())
    ours = logging.getLogger("ranklog")
    ours.handlers = list(logger.handlers)
    ours.propagate = False
    return logger


def invocation(logger: Logger) -> Callable[[Handler[A]], Handler[A]]:
    """Around a handler. Raises BadInput as it does, Failed for whatever else it raises."""

    def around(handler: Handler[A]) -> Handler[A]:
        @functools.wraps(handler)
        def invoked(event: dict[str, Any], context: Any) -> A:
            logger.append_keys(**NOBODYS)
            try:
                with traced(logger.service):
                    return handler(event, context)
            except BadInput:  # of the event or the settings: for who calls, and no line's words
                logger.exception("refused")
                raise
            except Exception as error:
                logger.exception("failed", extra={"kind": getattr(error, "kind", "bug")})
                name = type(error).__name__
            raise Failed(f"{name}; the line `failed` of the log says where")

        return logger.inject_lambda_context(clear_state=True)(invoked)

    return around
