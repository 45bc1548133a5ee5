"""A store that answers soon or not at all: for what a request needs before its own work begins.

A client of S3 that nobody answers goes on trying for minutes, and whoever asked has gone by then. Here a
call that takes too long is left to a thread, and for a moment no other is begun: so a request that needs
several waits once, and threads don't pile up.
"""

from __future__ import annotations

import builtins
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Generic, TypeVar

from ranklog import limits
from ranklog.errors import Unavailable
from ranklog.store.protocol import ObjectInfo, Store

T = TypeVar("T")


class Prompt:
    """A Store. Every call raises Unavailable after STORE_PROMPT_S_MAX, and for STORE_AWAY_S from then on
    at once. Lists are read whole: for small ones. Threads may share it."""

    def __init__(self, store: Store, *, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock_s = clock_s
        self._away_until_s = -float("inf")
        self._places = threading.BoundedSemaphore(limits.STORE_PROMPT_CALLS_MAX)

    @property
    def url(self) -> str:
        """See Store."""
        return self._store.url

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> str:
        """See Store."""
        return self._soon(lambda: self._store.put(key, data, if_absent=if_absent))

    def get(self, key: str) -> bytes:
        """See Store."""
        return self._soon(lambda: self._store.get(key))

    def get_range(self, key: str, start: int, length: int, *, if_match: str = "") -> bytes:
        """See Store."""
        return self._soon(lambda: self._store.get_range(key, start, length, if_match=if_match))

    def list(self, prefix: str, *, start_after: str = "") -> Iterator[ObjectInfo]:
        """See Store."""
        return iter(
            self._soon(lambda: builtins.list(self._store.list(prefix, start_after=start_after)))
        )

    def list_folders(self, prefix: str) -> Iterator[str]:
        """See Store."""
        return iter(self._soon(lambda: builtins.list(self._store.list_folders(prefix))))

    def delete(self, key: str) -> None:
        """See Store."""
        self._soon(lambda: self._store.delete(key))

    def local_path(self, key: str) -> Path | None:
        """See Store."""
        return self._store.local_path(key)

    def _soon(self, work: Callable[[], T]) -> T:
        if self._clock_s() < self._away_until_s or not self._places.acquire(blocking=False):
            raise Unavailable("the store does not answer")
        try:
            return done_within(limits.STORE_PROMPT_S_MAX, work, self._places.release)
        except Overdue:
            self._away_until_s = self._clock_s() + limits.STORE_AWAY_S
            raise


class Overdue(Unavailable):
    """What was asked of the store is not done yet, and goes on."""


def done_within(seconds: float, work: Callable[[], T], ended: Callable[[], None]) -> T:
    """What `work` returns or raises, done in a thread of its own. Raises Overdue where it takes longer:
    then it goes on, and nobody hears how it ended but `ended`, which is called in any case."""
    call = _Call(work, ended)
    try:
        call.start()
    except RuntimeError as error:  # no thread is to be had
        ended()
        raise Unavailable(f"the store can't be asked: {error}") from error
    if not call.done.wait(seconds):
        raise Overdue(
            f"the store does not answer within {round(seconds, 1):g} s",
            hint="check that it is there, then repeat",
        )
    if call.error is not None:
        raise call.error
    return call.values[0]


class _Call(threading.Thread, Generic[T]):
    """One piece of work: its value, or `error`, is there once `done` is set."""

    def __init__(self, work: Callable[[], T], ended: Callable[[], None]) -> None:
        super().__init__(name="ranklog-store", daemon=True)
        self._work = work
        self._ended = ended
        self.done = threading.Event()
        self.values: list[T] = []
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.values.append(self._work())
        except BaseException as error:  # raised by whoever waits for it
            self.error = error
        finally:
            self._ended()
            self.done.set()
