"""Phases and timers: how long parts of a step take, as points; a phase is also on every line inside.

Milliseconds of the host's clock (monotonic): what a device still computes when the block ends is not in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from time import monotonic_ns
from types import TracebackType
from typing import Any, TypeVar

from ranklog.produce.context import Handle, context
from ranklog.produce.telemetry import telemetry

PHASE_SERIES = "phase_ms"
TIMER_SERIES = "timer_ms"
_Item = TypeVar("_Item")


class Phase:
    """What `phase` returns: a `with` block, or open until `close`."""

    __slots__ = ("_began_ns", "_handle", "_name")

    def __init__(self, name: str) -> None:
        self._name = name
        self._handle: Handle | None = context(phase=name)
        self._began_ns = monotonic_ns()

    def __enter__(self) -> Phase:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End it, and write how long it was. A second time does nothing."""
        handle, self._handle = self._handle, None
        if handle is not None:
            took_ms = (monotonic_ns() - self._began_ns) / 1e6
            telemetry({PHASE_SERIES: took_ms}, phase=self._name)
            handle.close()


def phase(name: str) -> Phase:
    """`with ranklog.phase("checkpoint"):` — metadata `phase` on every line and point inside, and at its
    end a point of the series `phase_ms` with the dimension `phase`."""
    return Phase(name)


class Timer:
    """What `timer` returns: a `with` block, any number of times, one inside another too."""

    __slots__ = ("_began_ns", "_dims")

    def __init__(self, dims: dict[str, Any]) -> None:
        self._dims = dims
        self._began_ns: list[int] = []

    def __enter__(self) -> Timer:
        self._began_ns.append(monotonic_ns())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        took_ms = (monotonic_ns() - self._began_ns.pop()) / 1e6
        telemetry({TIMER_SERIES: took_ms}, **self._dims)

    def each(self, items: Iterable[_Item]) -> Iterator[_Item]:
        """The items, with the time that each was waited for: `for batch in timer("data").each(loader)`."""
        ending = object()
        from_here = iter(items)
        while True:
            began_ns = monotonic_ns()
            item = next(from_here, ending)
            if item is ending:
                return
            telemetry({TIMER_SERIES: (monotonic_ns() - began_ns) / 1e6}, **self._dims)
            yield item  # type: ignore[misc]


def timer(name: str, /, **dims: Any) -> Timer:
    """`with ranklog.timer("forward"):` — a point of the series `timer_ms` with the dimension `timer`.

    Lines are left as they are; keywords are further dimensions.
    """
    return Timer({"timer": name, **dims})
