"""Where an actor's steps are met: it pauses, is killed, stalled or gets a fault there.

`WatchedStore` has a step around each request, `watch` makes a step of any method.
"""

from __future__ import annotations

import functools
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from ranklog.store.protocol import ObjectInfo, Store
from tests.matrix.baton import Task
from tests.matrix.faults import (
    DOWN,
    KILL_AFTER,
    KILL_BEFORE,
    SIGKILL_AFTER,
    SIGKILL_BEFORE,
    STALL_AFTER,
    STALL_BEFORE,
    ActorPlan,
)
from tests.matrix.proxy import ERROR_503, HEADER

R = TypeVar("R")
# More than any client tries a request.
_ATTEMPTS = 40
_BEFORE = (KILL_BEFORE, SIGKILL_BEFORE, STALL_BEFORE)
_AFTER = (KILL_AFTER, SIGKILL_AFTER, STALL_AFTER)
_here = threading.local()


class Killed(BaseException):
    """The process ended here: nothing of it runs any more, no handler and no `finally`."""


class Boundary:
    """Of one actor at one piece of work. `faulted`: a request of it was disturbed.

    `task` None: it is alone. `in_child`: it is a process of its own, and a kill is SIGKILL.
    """

    def __init__(
        self, plan: ActorPlan, task: Task | None = None, *, in_child: bool = False
    ) -> None:
        self.plan = plan
        self.faulted = self.dead = self.stalled = False
        self.on_stall: Callable[[], None] = lambda: None
        self._task = task
        self._in_child = in_child

    def around(self, step: str, call: Callable[[], R]) -> R:
        """Do the step, with what the plan has for it."""
        fault = None if self.dead else self.plan.meet(step)
        self._meet(fault if fault in _BEFORE else None)
        if fault is not None and fault not in (*_BEFORE, *_AFTER):
            self.faulted = True
            _here.faults = [ERROR_503] * _ATTEMPTS if fault == DOWN else [fault]
        try:
            result = call()
        finally:
            _here.faults = []
        self._meet(fault if fault in _AFTER else None)
        return result

    def _meet(self, fault: str | None) -> None:
        if self._task is not None and not self.dead:
            self._task.pause()
        if fault in (STALL_BEFORE, STALL_AFTER) and self._task is not None:
            self.stalled = True
            self.on_stall()
            self._task.stall()
        elif fault is not None:
            if self._in_child:
                os.kill(os.getpid(), signal.SIGKILL)
            self.dead = True
        if self.dead:
            raise Killed


def name_fault(request: Any, **_: Any) -> None:
    """A handler of botocore's `before-send`: tell the proxy what is to be done to this attempt."""
    faults = getattr(_here, "faults", None)
    if faults:
        request.headers[HEADER] = faults.pop(0)


# --- methods -------------------------------------------------------------------------------------
def watch(owner: Any, name: str, step: str) -> None:
    """From here on a call of `owner.name` is a step of the thread's actor, if it is one."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def stepped(*args: Any, **kwargs: Any) -> Any:
        boundary: Boundary | None = getattr(_here, "boundary", None)
        if boundary is None:
            return original(*args, **kwargs)
        return boundary.around(step, lambda: original(*args, **kwargs))

    setattr(owner, name, stepped)


class acting:
    """For the length of a `with` the thread is the actor of a boundary."""

    def __init__(self, boundary: Boundary) -> None:
        self._boundary = boundary

    def __enter__(self) -> None:
        _here.boundary = self._boundary

    def __exit__(self, *_: object) -> None:
        _here.boundary = None


# --- requests ------------------------------------------------------------------------------------
class Ages:
    """When objects were put, by the schedule's clock: the servers' own stands still beside it."""

    def __init__(self, clock: Callable[[], int], known: dict[str, int] | None = None) -> None:
        self.clock = clock
        self._put: dict[str, int] = dict(known or {})

    def known(self) -> dict[str, int]:
        """For another process."""
        return dict(self._put)

    def stamp(self, key: str) -> None:
        self._put[key] = self.clock()

    def of(self, key: str) -> int:
        """One that nobody saw being put is new."""
        return self._put.setdefault(key, self.clock())

    def refresh(self, listed: list[ObjectInfo], since_ns: int) -> None:
        """What another process put since a time of the servers' clock is new."""
        for info in listed:
            if info.modified_ns is None or info.modified_ns + 2_000_000_000 >= since_ns:
                self.stamp(info.key)


_KINDS = {
    "data": "segment",
    "index": "index",
    "arrivals": "pointer",
    "runs": "marker",
    "tombstones": "tombstone",
    "actions": "action",
    "pins": "pin",
    "compaction": "lease",
    "config": "config",
    "quarantine": "quarantine",
    "waiting": "waiting",
    "usage": "usage",
}


def kind_of(key: str) -> str:
    """What an object is, by its key or a prefix of it."""
    return _KINDS.get(key.split("/")[1] if "/" in key else "", "other")


class WatchedStore:
    """A store whose requests are steps, and whose objects are as old as `ages` says."""

    def __init__(self, store: Store, disturbed: Store, boundary: Boundary, ages: Ages) -> None:
        """`disturbed`: the same objects behind the proxy, for requests that something happens to.
        `boundary` is whose who uses it now."""
        self._sure = store
        self._disturbed = disturbed
        self.boundary = boundary
        self._ages = ages

    @property
    def url(self) -> str:
        return self._sure.url

    @property
    def _store(self) -> Store:
        return self._disturbed if getattr(_here, "faults", None) else self._sure

    def _step(self, key: str, request: str, call: Callable[[], R]) -> R:
        return self.boundary.around(f"{kind_of(key)}.{request}", call)

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> str:
        def call() -> str:
            from ranklog.errors import AlreadyExists

            try:
                etag = self._store.put(key, data, if_absent=if_absent)
            except AlreadyExists:
                raise
            except Exception:
                self._ages.stamp(key)  # whether it was carried out nobody knows
                raise
            self._ages.stamp(key)
            return etag

        return self._step(key, "put", call)

    def get(self, key: str) -> bytes:
        return self._step(key, "get", lambda: self._store.get(key))

    def get_range(self, key: str, start: int, length: int, *, if_match: str = "") -> bytes:
        return self._step(
            key, "range", lambda: self._store.get_range(key, start, length, if_match=if_match)
        )

    def list(self, prefix: str, *, start_after: str = "") -> Iterator[ObjectInfo]:
        listed = self._step(
            prefix, "list", lambda: [*self._store.list(prefix, start_after=start_after)]
        )
        for info in listed:
            yield ObjectInfo(info.key, info.length, info.etag, self._ages.of(info.key))

    def list_folders(self, prefix: str) -> Iterator[str]:
        yield from self._step(prefix, "folders", lambda: [*self._store.list_folders(prefix)])

    def delete(self, key: str) -> None:
        self._step(key, "delete", lambda: self._store.delete(key))

    def local_path(self, key: str) -> Path | None:
        return None
