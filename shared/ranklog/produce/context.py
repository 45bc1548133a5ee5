"""What is stamped on every line: rank, iteration, metadata.

A process-wide default with an overlay per thread or task (contextvars; a new thread starts with
none). Both are immutable, so a line takes a reference and looks at nothing twice.
"""

from __future__ import annotations

from contextvars import ContextVar
from types import TracebackType
from typing import Any

from ranklog.model.frame import STREAM_RANK
from ranklog.produce import trouble
from ranklog.produce.values import clean_metadata, clean_value

# An iteration that is not set here; None would mean "none".
INHERITED = -(2**63)


class Context:
    """One state of the overlay or the default. `rank` is STREAM_RANK where it is not set."""

    __slots__ = ("iteration", "metadata", "rank")

    def __init__(self, rank: int | None, iteration: int | None, metadata: dict[str, Any]) -> None:
        self.rank = rank
        self.iteration = iteration
        self.metadata = metadata


EMPTY = Context(STREAM_RANK, INHERITED, {})
_overlay: ContextVar[Context] = ContextVar("ranklog", default=EMPTY)
# Written whole, read whole: the GIL (or the atomic store of a free-threaded build) is the lock.
_process_iteration: int | None = None


def current() -> Context:
    """This thread's or task's overlay."""
    return _overlay.get()


def iteration_of(context: Context) -> int | None:
    """The iteration of a line in this context."""
    return _process_iteration if context.iteration == INHERITED else context.iteration


class Handle:
    """Undoes a change when closed, or at the end of a `with`; what else was set since then stays."""

    __slots__ = ("_before", "_names", "_process", "_scoped")

    def __init__(
        self,
        before: Context,
        names: tuple[str, ...],
        process: tuple[int | None, int] | None = None,
        scoped: int | None = None,
    ) -> None:
        self._before = before
        self._names = names
        self._process = process  # the process's iteration before, and ours
        self._scoped = scoped

    def __enter__(self) -> Handle:
        if self._scoped is not None:  # iteration(): in a `with`, this thread has its own
            now = _overlay.get()
            _overlay.set(Context(now.rank, self._scoped, now.metadata))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Set back what was before."""
        global _process_iteration
        _overlay.set(_restored(_overlay.get(), self._before, self._names))
        if self._process is not None and _process_iteration == self._process[1]:
            _process_iteration = self._process[0]


def _restored(now: Context, before: Context, names: tuple[str, ...]) -> Context:
    metadata = {key: value for key, value in now.metadata.items() if key not in names}
    metadata.update((key, before.metadata[key]) for key in names if key in before.metadata)
    return Context(
        before.rank if "rank" in names else now.rank,
        before.iteration if "iteration" in names else now.iteration,
        metadata,
    )


def context(**values: Any) -> Handle:
    """Metadata on every later line of this thread or task, until the handle is closed.

    `rank=3` makes the lines rank 3's (None: nobody's), `iteration=` (or `step=`) sets this thread's
    iteration; None takes a key away. Values follow the rules of metadata.
    """
    before = _overlay.get()
    names = tuple("iteration" if name == "step" else name for name in values)
    try:
        _overlay.set(_changed(before, values))
    except Exception:
        trouble.swallow("setting a context")
    return Handle(before, names)


def _changed(before: Context, values: dict[str, Any]) -> Context:
    rank, iteration = before.rank, before.iteration
    if "rank" in values:
        rank = _whole(values.pop("rank"))
        rank = rank if rank is not None and 0 <= rank < 2**31 else None
    for name in ("step", "iteration"):
        if name in values:
            iteration = _whole(values.pop(name))
    metadata = {key: old for key, old in before.metadata.items() if key not in values}
    metadata.update(clean_metadata(values))
    return Context(rank, iteration, metadata)


def _whole(value: Any) -> int | None:
    plain = clean_value(value)
    return plain if isinstance(plain, int) else None


def phase(name: str) -> Handle:
    """`with ranklog.phase("checkpoint"):` — metadata `phase` on every line inside."""
    return context(phase=name)


def iteration(number: int) -> Handle:
    """The training iteration from here on, process-wide; in a `with`, until its end.

    In a thread that has a rank of its own (`context(rank=…)`) it is that thread's only: other ranks
    of the process are elsewhere.
    """
    global _process_iteration
    before = _overlay.get()
    whole = _whole(number)
    if whole is None:
        trouble.once("iteration", f"iteration({number!r:.40}) is no whole number and was left out")
        return Handle(before, ())
    if before.rank != STREAM_RANK or before.iteration != INHERITED:
        _overlay.set(Context(before.rank, whole, before.metadata))
        return Handle(before, ("iteration",), None, whole)
    process = (_process_iteration, whole)
    _process_iteration = whole
    return Handle(before, ("iteration",), process, whole)


def reset() -> None:
    """Forget everything (tests)."""
    global _process_iteration
    _process_iteration = None
    _overlay.set(EMPTY)
