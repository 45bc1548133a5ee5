"""What is stamped on every line: rank, iteration, metadata.

A process-wide default with an overlay per thread or task (contextvars; a new thread starts with
none). What is said of rank and metadata is a stamp: immutable, one for the same words, with the
number under which the process's definitions know it. So a line takes a reference and a number, and
going back and forth between two contexts makes nothing new.
"""

from __future__ import annotations

from contextvars import ContextVar
from types import TracebackType
from typing import Any

from ranklog.produce import trouble
from ranklog.produce.values import clean_metadata, clean_value

# As ranklog.model.frame has them, which `import ranklog` need not wait for; a test compares.
STREAM_RANK = -(2**31)  # of a stamp without a rank: the line's is its stream's
NO_ITERATION = -(2**63)
# An overlay's iteration that is not set.
INHERITED = NO_ITERATION + 1
# Stamps and ways from one to another that are remembered; over it all are forgotten.
REMEMBERED_MAX = 4096

_PLAIN = frozenset([str, int, float, bool, type(None)])


class Stamp:
    """Rank (None: nobody's) and metadata of lines; `number` where it is defined, by its `owner`."""

    __slots__ = ("metadata", "number", "owner", "rank")

    def __init__(self, rank: int | None, metadata: dict[str, Any]) -> None:
        self.rank = rank
        self.metadata = metadata
        self.number = 0
        self.owner: object = None


class _Process:
    """What is process-wide. Written whole, read whole: needs no lock."""

    __slots__ = ("iteration",)

    def __init__(self) -> None:
        self.iteration = NO_ITERATION


EMPTY = Stamp(STREAM_RANK, {})
process = _Process()
stamp_variable = _stamp = ContextVar[Stamp]("ranklog", default=EMPTY)
iteration_variable = _iteration = ContextVar[int]("ranklog_iteration", default=INHERITED)
# This thread's or task's, for the hot path; `own_iteration` may be INHERITED.
current = _stamp.get
own_iteration = _iteration.get

_by_words: dict[Any, Stamp] = {}
_ways: dict[Any, Stamp] = {}


def current_iteration() -> int | None:
    """The iteration of a line of this thread or task."""
    own = own_iteration()
    number = process.iteration if own == INHERITED else own
    return None if number == NO_ITERATION else number


class Handle:
    """Undoes a change when closed, or at the end of a `with`; what else was set since then stays."""

    __slots__ = ("_after", "_before", "_iteration", "_names")

    def __init__(
        self, before: Stamp, after: Stamp, names: tuple[str, ...], iteration: int | None = None
    ) -> None:
        self._before = before
        self._after = after
        self._names = names
        self._iteration = iteration  # what this thread's was, if it was changed

    def __enter__(self) -> Handle:
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
        now = current()
        if now is self._after:
            _stamp.set(self._before)
        elif self._names:
            _stamp.set(_restored(now, self._before, self._names))
        if self._iteration is not None:
            _iteration.set(self._iteration)


def _restored(now: Stamp, before: Stamp, names: tuple[str, ...]) -> Stamp:
    metadata = {key: value for key, value in now.metadata.items() if key not in names}
    metadata.update((key, before.metadata[key]) for key in names if key in before.metadata)
    return _stamp_of(before.rank if "rank" in names else now.rank, metadata)


def context(**values: Any) -> Handle:
    """Metadata on every later line of this thread or task, until the handle is closed.

    `rank=3` makes the lines rank 3's (None: nobody's), `iteration=` (or `step=`) sets this thread's
    iteration; None takes a key away. Values follow the rules of metadata.
    """
    before = current()
    try:
        if len(values) == 1:
            ((name, value),) = values.items()
            kind = value.__class__
            way = (before, name, kind, value) if kind in _PLAIN else None
        else:
            kinds = [value.__class__ for value in values.values()]
            way = (before, *values.items(), *kinds) if _PLAIN.issuperset(kinds) else None
        known = _ways.get(way)
        if known is not None:
            _stamp.set(known)
            return Handle(before, known, tuple(values))
        return _change(before, values, way)
    except Exception:
        trouble.swallow("setting a context")
        return Handle(before, before, ())


def _change(before: Stamp, values: dict[str, Any], way: Any) -> Handle:
    names = tuple(values)
    own: int | None = None
    for name in ("step", "iteration"):
        if name in values:
            own = own_iteration()
            number = _whole(values.pop(name))
            _iteration.set(NO_ITERATION if number is None else number)
            way = None
    after = _changed(before, values)
    if way is not None:
        if len(_ways) >= REMEMBERED_MAX:
            _ways.clear()
        _ways[way] = after
    _stamp.set(after)
    return Handle(before, after, names, own)


def _changed(before: Stamp, values: dict[str, Any]) -> Stamp:
    rank = before.rank
    if "rank" in values:
        rank = _whole(values.pop("rank"))
        rank = rank if rank is not None and 0 <= rank < 2**31 else None
    if not values:
        return before if rank == before.rank else _stamp_of(rank, before.metadata)
    metadata = {key: old for key, old in before.metadata.items() if key not in values}
    metadata.update(clean_metadata(values))
    return _stamp_of(rank, metadata)


def _stamp_of(rank: int | None, metadata: dict[str, Any]) -> Stamp:
    """The one stamp that says this."""
    words = (rank, *metadata.items(), *[value.__class__ for value in metadata.values()])
    stamp = _by_words.get(words)
    if stamp is None:
        if len(_by_words) >= REMEMBERED_MAX:
            _by_words.clear()
        stamp = Stamp(rank, metadata) if metadata or rank != STREAM_RANK else EMPTY
        stamp = _by_words.setdefault(words, stamp)
    return stamp


def _whole(value: Any) -> int | None:
    plain = clean_value(value)
    return plain if isinstance(plain, int) else None


class _IterationHandle(Handle):
    """Of `iteration`. In a `with`, this thread has its own."""

    __slots__ = ("_ours", "_process_before")

    def __init__(self, ours: int, process_before: int) -> None:
        stamp = current()
        super().__init__(stamp, stamp, ())
        self._ours = ours
        self._process_before = process_before

    def __enter__(self) -> Handle:
        self._iteration = own_iteration()
        _iteration.set(self._ours)
        return self

    def close(self) -> None:
        if self._iteration is not None:
            _iteration.set(self._iteration)
        if process.iteration == self._ours:
            process.iteration = self._process_before


def iteration(number: int) -> Handle:
    """The training iteration from here on, process-wide; in a `with`, until its end.

    In a thread that has a rank of its own (`context(rank=…)`) it is that thread's only: other ranks
    of the process are elsewhere.
    """
    stamp = current()
    whole = number if number.__class__ is int and -(2**62) < number < 2**62 else _whole(number)
    if whole is None:
        trouble.once("iteration", f"iteration({number!r:.40}) is no whole number and was left out")
        return Handle(stamp, stamp, ())
    own = own_iteration()
    if stamp.rank != STREAM_RANK or own != INHERITED:
        _iteration.set(whole)
        return Handle(stamp, stamp, (), own)
    handle = _IterationHandle(whole, process.iteration)
    process.iteration = whole
    return handle


def reset() -> None:
    """Forget everything (tests)."""
    process.iteration = NO_ITERATION
    _stamp.set(EMPTY)
    _iteration.set(INHERITED)
