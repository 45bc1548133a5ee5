"""`Logger._log` without a record, where nobody but our handler would see it.

logging makes a LogRecord of two dozen fields for each line, which costs three times what writing the
line does. It is made as ever, by logging's own code, when anything could look at it: another handler
on the way, a filter, `extra`, an exception, a record factory, a subclass, somebody's patch of Logger.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from typing import Any

from ranklog.produce import trouble
from ranklog.produce.calls import Call
from ranklog.produce.compiled import hot
from ranklog.produce.handler import RanklogHandler
from ranklog.produce.producer import Producer

_PLAIN_LOGGERS = frozenset([logging.Logger, logging.RootLogger])
_SOURCE: str | None = logging._srcfile
# Before 3.11 `stacklevel` counts logging's own frames too, and ours is one more.
_COUNTS_OWN_FRAMES = sys.version_info < (3, 11)


class FastLog:
    """Installed by `init`, unless somebody else has replaced what it replaces; removed by `close`."""

    def __init__(self, handler: RanklogHandler) -> None:
        self._handler = handler
        self._before: Any = None
        self._ours: Any = None

    def install(self) -> None:
        """Until `remove`; taken out meanwhile where the root has other handlers too."""
        self._handler.on_root_change = lambda alone: self._put() if alone else self._take_out()
        self._handler.root_changed()

    def remove(self) -> None:
        """For good."""
        self._handler.on_root_change = lambda alone: None
        self._take_out()

    def _put(self) -> None:
        logger = logging.Logger
        if logger._log is self._ours:
            return
        stock = (logger._log, logger.handle, logger.callHandlers, logger.makeRecord)
        if all(_is_loggings(method) for method in stock):
            self._before = logger._log
            self._ours = _replacement(self._handler, *stock)
            logger._log = self._ours  # type: ignore[method-assign]

    def _take_out(self) -> None:
        if self._ours is not None and logging.Logger._log is self._ours:
            logging.Logger._log = self._before  # type: ignore[method-assign]


def _is_loggings(method: Any) -> bool:
    code = getattr(method, "__code__", None)
    ours = getattr(method, "__module__", None) != "logging"
    return code is not None and not ours and os.path.normcase(code.co_filename) == _SOURCE


def _finder(producer: Producer, handle: Any, make_record: Any) -> Callable[..., Call | None]:
    logger_class, get_frame = logging.Logger, sys._getframe

    def find(logger: logging.Logger, frame: Any, level: int, caller: Any = None) -> Call | None:
        """The call that `frame` is in; `caller` is who called `_log`, as a rule who calls this.

        None where a record is needed after all: a subclass, somebody patched Logger or calls `_log`.
        """
        if (
            (caller or get_frame(1)).f_code.co_filename != _SOURCE
            or type(logger) not in _PLAIN_LOGGERS
            or logger_class.handle is not handle
            or logger_class.makeRecord is not make_record
        ):
            return None
        while frame is not None and frame.f_code.co_filename == _SOURCE:
            frame = frame.f_back
        return producer.call_at(frame, logger.name, level, logger)

    return find


def _replacement(
    ours: RanklogHandler, original: Any, handle: Any, call_handlers: Any, make_record: Any
) -> Callable[..., None]:
    logger_class, warning, get_frame = logging.Logger, logging.WARNING, sys._getframe
    module: Any = logging
    factory = logging.LogRecord
    producer: Producer = ours.producer
    root, alone = logging.getLogger(), [ours]
    find = _finder(producer, handle, make_record)

    def _log(
        self: logging.Logger,
        level: int,
        msg: Any,
        args: Any,
        exc_info: Any = None,
        extra: Any = None,
        stack_info: bool = False,
        stacklevel: int = 1,
    ) -> None:
        if (
            level < warning
            and exc_info is None
            and extra is None
            and stacklevel == 1
            and not stack_info
            and not self.filters
        ):
            logger: Any = self
            while (
                logger is not root
                and logger is not None
                and not logger.handlers
                and logger.propagate
            ):
                logger = logger.parent
            if (
                logger is root
                and root.handlers == alone
                and not ours.filters
                and logger_class.callHandlers is call_handlers
                and module._logRecordFactory is factory
            ):
                if level < ours.level:
                    return
                frame: Any = None  # and stays so where a program calls `_log` at its top
                try:
                    frame = get_frame(2)
                    call = producer.by_template.get(msg) if args else None
                    if (
                        call is None
                        or call.code is not frame.f_code
                        or call.instruction != frame.f_lasti
                        or call.level != level
                        or call.owner is not self
                    ):
                        call = find(self, frame, level, get_frame(1))
                    if call is not None:
                        producer.line(call, msg, args)
                        return
                except Exception:
                    if frame is not None:
                        trouble.swallow("taking a log record")
                        return
        if _COUNTS_OWN_FRAMES and stacklevel > 1:
            stacklevel += 1
        original(self, level, msg, args, exc_info, extra, stack_info, stacklevel)

    # logging looks for the caller behind all frames of its own file: ours is to be one of them.
    _log.__code__ = _log.__code__.replace(co_filename=_SOURCE or "?")
    return _log if hot is None else hot.LogMethod(_log, ours, find, _SOURCE or "?")
