"""The handler for Python's logging: one record in, one journal record out, no lock of its own."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ranklog.produce import trouble
from ranklog.produce.calls import Call
from ranklog.produce.clock import OFFSET_NS
from ranklog.produce.compiled import HandlerFields, hot
from ranklog.produce.console import ConsoleCopy
from ranklog.produce.context import EMPTY, INHERITED, iteration_variable, process, stamp_variable
from ranklog.produce.producer import Producer
from ranklog.produce.records import filled
from ranklog.produce.values import clean_metadata, text_of

_PLAIN = logging.LogRecord("", 0, "", 0, "", None, None).__dict__
_PLAIN_FIELDS = len(_PLAIN)
# What a record has that nobody gave as `extra`; 3.12 added taskName, formatters set the rest.
_STANDARD = frozenset([*_PLAIN, "message", "asctime", "taskName"])
_FORMATTER = logging.Formatter()
_ROOT = logging.getLogger()

if hot is not None:
    hot.configure(
        stamp_variable,
        iteration_variable,
        EMPTY,
        INHERITED,
        process,
        _ROOT,
        logging.LogRecord,
        OFFSET_NS,
        _PLAIN_FIELDS,
    )


class _NoLock:
    """The journal needs none, and a lock is what forked workers deadlock on."""

    def acquire(self) -> bool:
        return True

    def release(self) -> None: ...

    def __enter__(self) -> None: ...

    def __exit__(self, *details: object) -> None: ...


class RanklogHandler(HandlerFields, logging.Handler):
    """Attached to the root logger by `init`; may be attached to any logger that does not propagate."""

    def __init__(self, producer: Producer, console: ConsoleCopy | None = None) -> None:
        super().__init__()
        self.producer = producer
        self._console = console
        self.handlers_seen = 0  # of the root: when one is added, its console may have to move
        # Called with whether it has ours alone.
        self.on_root_change: Callable[[bool], None] = lambda alone: None

    def createLock(self) -> None:
        self.lock = _NoLock()  # type: ignore[assignment]

    def handle_by_python(self, record: logging.LogRecord) -> bool:
        """Filter and emit."""
        if self.filters:
            accepted: Any = self.filter(record)
            if not accepted:
                return False
            if accepted is not True:
                record = accepted
        self.emit(record)
        return True

    if not TYPE_CHECKING and hot is None:
        handle = handle_by_python

    def emit(self, record: logging.LogRecord) -> None:
        """Never raises: an error of ours, or of a message's arguments, is counted and told once."""
        try:
            if len(_ROOT.handlers) != self.handlers_seen:
                self.handlers_seen = len(_ROOT.handlers)
                self.root_changed()
            fields = record.__dict__
            level = record.levelno
            producer = self.producer
            call = producer.calls.get((record.pathname, record.lineno, record.name, level))
            if call is None:
                call = producer.call(
                    record.pathname, record.lineno, record.funcName, record.name, level
                )
            if (
                record.exc_info
                or record.exc_text
                or record.stack_info
                or len(fields) - ("message" in fields) - ("asctime" in fields) > _PLAIN_FIELDS
            ):
                self._emit_whole(record, call)
            else:
                producer.line(call, record.msg, record.args)
        except Exception:
            trouble.swallow("taking a log record")
        if record.levelno >= logging.WARNING:
            self._show_as_before(record)

    def root_changed(self) -> None:
        """The root logger has other handlers than before."""
        if self._console is not None:
            self._console.move_handlers(_ROOT)
        self.on_root_change(len(_ROOT.handlers) == 1)

    def _emit_whole(self, record: logging.LogRecord, call: Call) -> None:
        """With what `extra` gave, with a traceback."""
        fields = record.__dict__
        extra = {key: fields[key] for key in fields.keys() - _STANDARD}
        trace = None
        if record.exc_info and record.exc_info[0] is not None:
            trace = _FORMATTER.formatException(record.exc_info)
        elif record.exc_text:
            trace = record.exc_text
        if record.stack_info:
            trace = f"{trace}\n{record.stack_info}" if trace else record.stack_info
        text = filled(record.msg, record.args) if record.args else text_of(record.msg)
        self.producer.emit(record.levelno, call.site, text, clean_metadata(extra), trace)

    def _show_as_before(self, record: logging.LogRecord) -> None:
        """Where no handler but ours would show a warning, logging's last resort did before `init`."""
        logger: logging.Logger | None = logging.getLogger(record.name)
        while logger is not None:
            if any(not isinstance(handler, RanklogHandler) for handler in logger.handlers):
                return
            logger = logger.parent if logger.propagate else None
        last = logging.lastResort
        if last is None or record.levelno < last.level:
            return
        if self._console is not None:
            try:
                text = last.format(record)
            except Exception:  # a message and arguments that don't fit: told as logging tells it
                last.handleError(record)
            else:
                self._console.write(text + "\n")
        elif sys.stderr is not None:
            last.handle(record)
