"""Ends scans that nobody waits for any more: from another thread, also while DuckDB works."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import Protocol


class Interruptible(Protocol):
    """A DuckDB connection."""

    def interrupt(self) -> None: ...


class Stop:
    """Set once, and for good. What runs under it is interrupted, what begins later does not run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: list[Interruptible] = []
        self._told: list[Callable[[], object]] = []
        self.is_set = False

    def set(self) -> None:
        """Interrupt everything that runs under it, and tell who waits."""
        with self._lock:
            self.is_set = True
            running, told = list(self._running), list(self._told)
        for item in running:
            item.interrupt()
        for tell in told:
            tell()

    def tell(self, call: Callable[[], object]) -> None:
        """Call this when it is set."""
        with self._lock:
            self._told.append(call)

    @contextmanager
    def watching(self, item: Interruptible) -> Iterator[None]:
        """`item` works inside the block."""
        with self._lock:
            self._running.append(item)
        try:
            yield
        finally:
            with self._lock:
                self._running.remove(item)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """What this thread scans inside the block runs under it."""
        token: Token[Stop | None] = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)


_current: ContextVar[Stop | None] = ContextVar("stop", default=None)


def current_stop() -> Stop | None:
    """What this thread runs under."""
    return _current.get()
