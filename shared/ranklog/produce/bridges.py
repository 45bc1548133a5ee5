"""Libraries that log past Python's logging: what to give them, so that their lines are ours too.

absl, and whatever else ends in Python's logging, needs nothing.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, MutableMapping
from types import FrameType
from typing import Any

from ranklog.model.levels import ERROR, INFO, parse_level
from ranklog.produce import session, trouble
from ranklog.produce.calls import Call
from ranklog.produce.values import clean_metadata

# What structlog's own processors put into an event, and is no metadata of it.
_STRUCTLOG_OWN = frozenset(
    "event level log_level timestamp logger logger_name exc_info exception stack_info stack "
    "_record _from_structlog _logger _name".split()
)


def loguru_sink() -> Callable[[Any], None]:
    """For `loguru.logger.add(ranklog.loguru_sink(), format="{message}", level=0)`.

    Lines have loguru's level, file, line, function and module; what was bound is metadata.
    """
    return _take_loguru


def _take_loguru(message: Any) -> None:
    try:
        producer = session.active()
        if producer is None:
            return
        record = message.record
        call = producer.call(
            record["file"].path,
            record["line"],
            record["function"],
            record["name"],
            record["level"].no,
        )
        extra, trace = record["extra"], None
        if (failed := record["exception"]) is not None and failed.type is not None:
            trace = _traceback(failed.type, failed.value, failed.traceback)
        if extra or trace:
            values = clean_metadata(extra)
            producer.emit(call.level, call.site, record["message"], values, trace)
        else:
            producer.line(call, record["message"])
    except Exception:
        trouble.swallow("taking a line of loguru")


def structlog_processor(
    logger: Any, method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """A processor that takes the event as a line and hands it on as it is.

    To stand before the renderer; for structlog that does not end in Python's logging (from there we
    have it already). `event` is the text, its other keys are metadata.
    """
    try:
        producer = session.active()
        if producer is not None:
            level = parse_level(str(event.get("level", method)))
            level = ERROR if level is None and method == "exception" else level
            call = producer.call_at(
                _caller(), _name_of(logger, event), INFO if level is None else level
            )
            _take_event(call, event)
    except Exception:
        trouble.swallow("taking an event of structlog")
    return event


def _take_event(call: Call, event: MutableMapping[str, Any]) -> None:
    producer = session.active()
    if producer is None:
        return
    values = clean_metadata({k: v for k, v in event.items() if k not in _STRUCTLOG_OWN})
    trace = event.get("exception")
    failed = event.get("exc_info")
    if trace is None and failed:
        if isinstance(failed, BaseException):
            trace = _traceback(type(failed), failed, failed.__traceback__)
        else:
            kind, error, where = failed if isinstance(failed, tuple) else sys.exc_info()
            trace = _traceback(kind, error, where) if kind else None
    text = str(event.get("event", ""))
    if values or trace:
        producer.emit(call.level, call.site, text, values, None if trace is None else str(trace))
    else:
        producer.line(call, text)


def _name_of(logger: Any, event: MutableMapping[str, Any]) -> str | None:
    name = event.get("logger") or getattr(logger, "name", None)
    return name if isinstance(name, str) else None


def _caller() -> FrameType | None:
    """The first frame outside structlog, and outside us."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] != "structlog":
            return frame
        frame = frame.f_back
    return None


def _traceback(kind: Any, error: Any, where: Any) -> str:
    return "".join(traceback.format_exception(kind, error, where)).rstrip("\n")
