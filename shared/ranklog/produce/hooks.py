"""What reaches nobody's logger: uncaught exceptions of main and threads, warnings, basicConfig.

Each hook logs, then does what was done before it. Where fd 2 is captured, Python's own printing of
the same thing goes to the console only, so that it is not stored twice.
"""

from __future__ import annotations

import functools
import logging
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import Any

from ranklog.model.levels import CRITICAL, ERROR, WARNING
from ranklog.produce import trouble
from ranklog.produce.console import ConsoleCopy
from ranklog.produce.handler import RanklogHandler
from ranklog.produce.producer import Producer


class Hooks:
    """Installed by `init`, taken out by `close`. `console` is there where fd 2 is captured."""

    def __init__(self, producer: Producer, console: ConsoleCopy | None) -> None:
        self._producer = producer
        self._console = console
        self._undo: list[Callable[[], None]] = []

    def install(self) -> None:
        """Put every hook in its place."""
        self._replace(sys, "excepthook", self._excepthook)
        self._replace(threading, "excepthook", self._thread_excepthook)
        self._replace(sys, "unraisablehook", self._unraisablehook)
        self._replace(warnings, "showwarning", self._showwarning)
        self._replace(logging, "basicConfig", _basic_config)

    def remove(self) -> None:
        """Give back what nobody else has replaced since."""
        for undo in reversed(self._undo):
            undo()
        self._undo.clear()

    def _replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        before = getattr(owner, name)
        ours = make(before)
        setattr(owner, name, ours)

        def undo() -> None:
            if getattr(owner, name) is ours:
                setattr(owner, name, before)

        self._undo.append(undo)

    def _excepthook(self, before: Any) -> Any:
        def excepthook(
            kind: type[BaseException], error: BaseException, trace: TracebackType | None
        ) -> None:
            if not issubclass(kind, KeyboardInterrupt):
                self._log_exception(kind, error, trace, "uncaught exception")
            if self._console is not None and before is sys.__excepthook__:
                self._console.write("".join(traceback.format_exception(kind, error, trace)))
            else:
                before(kind, error, trace)

        return excepthook

    def _thread_excepthook(self, before: Any) -> Any:
        def excepthook(args: threading.ExceptHookArgs) -> None:
            if args.exc_type is not SystemExit:
                name = args.thread.name if args.thread else "?"
                what = f"uncaught exception in thread {name}"
                self._log_exception(args.exc_type, args.exc_value, args.exc_traceback, what)
            if self._console is not None and before is threading.__excepthook__:
                self._console.write(
                    "".join(
                        traceback.format_exception(
                            args.exc_type, args.exc_value, args.exc_traceback
                        )
                    )
                )
            else:
                before(args)

        return excepthook

    def _unraisablehook(self, before: Any) -> Any:
        def unraisablehook(args: Any) -> None:
            """Of an exception in `__del__`, in a callback of C: nobody catches it."""
            kind, error, trace = args.exc_type, args.exc_value, args.exc_traceback
            try:
                what = f"{args.err_msg or 'exception ignored in'} {args.object!r:.200}"
            except Exception:  # a stranger's __repr__, of an object that is being destroyed
                what = "exception ignored"
            self._log_exception(kind, error, trace, what, ERROR)
            if self._console is not None and before is sys.__unraisablehook__:
                self._console.write(
                    f"{what}\n" + "".join(traceback.format_exception(kind, error, trace))
                )
            else:
                before(args)

        return unraisablehook

    def _showwarning(self, before: Any) -> Any:
        def showwarning(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: Any = None,
            line: str | None = None,
        ) -> None:
            by_logging = getattr(before, "__module__", "") == "logging"  # captureWarnings(True)
            if file is None and not by_logging:
                self._log_warning(message, category, filename, lineno)
            if self._console is not None and file is None and before is _PLAIN_SHOWWARNING:
                self._console.write(
                    warnings.formatwarning(message, category, filename, lineno, line)
                )
            else:
                before(message, category, filename, lineno, file, line)

        return showwarning

    def _log_exception(
        self,
        kind: type[BaseException],
        error: BaseException | None,
        trace: TracebackType | None,
        what: str,
        level: int = CRITICAL,
    ) -> None:
        try:
            last = traceback.extract_tb(trace)[-1:] if trace else []
            site = 0
            if last:
                file, line = last[0].filename, last[0].lineno or 0
                site = self._producer.site_number(file, line, last[0].name, None)
            text = "".join(traceback.format_exception(kind, error, trace)).rstrip("\n")
            self._producer.emit(level, site, f"{what}: {kind.__name__}: {error}", None, text)
        except Exception:
            trouble.swallow("logging an uncaught exception")

    def _log_warning(
        self, message: Warning | str, category: type[Warning], filename: str, lineno: int
    ) -> None:
        try:
            site = self._producer.site_number(filename, lineno, None, "py.warnings")
            self._producer.emit(WARNING, site, f"{category.__name__}: {message}")
        except Exception:
            trouble.swallow("logging a warning")


_PLAIN_SHOWWARNING = warnings.showwarning


def _basic_config(before: Any) -> Any:
    @functools.wraps(before)
    def basicConfig(**options: Any) -> None:
        """As before `init`: a root logger that has only our handler counts as not configured."""
        root = logging.getLogger()
        ours = [handler for handler in root.handlers if isinstance(handler, RanklogHandler)]
        if options.get("force") or len(ours) < len(root.handlers):
            before(**options)
        else:
            for handler in ours:
                root.removeHandler(handler)
            before(**options)
        for handler in ours:
            root.addHandler(handler)

    return basicConfig
