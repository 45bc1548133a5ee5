"""Places of a walk while it is built, and where those wait that lack a side.

Shapes: a slot has one entry per side, that side's line or None.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from ranklog.model.answer import Line


class Timed(Protocol):
    """A line, or what stands for one."""

    @property
    def ts_ns(self) -> int: ...


# Candidates tried for a line that has no partner of its own shape.
WORD_TRIES_MAX = 8
T = TypeVar("T", bound=Timed)


@dataclass(slots=True)
class Slot(Generic[T]):
    """One place. `key` is an interned (call site, shape); `moved`: in another order on some side."""

    key: int
    lines: list[T | None]
    moved: bool = False
    words: bool = False  # paired by words: the texts have different shapes

    @property
    def side(self) -> int:
        """The first side that has a line here."""
        return next(at for at, line in enumerate(self.lines) if line is not None)

    @property
    def first(self) -> T:
        """That side's line."""
        return next(line for line in self.lines if line is not None)

    @property
    def missing(self) -> bool:
        """Whether a side says nothing here."""
        return None in self.lines


def body(line: Line) -> str:
    """The text without its envelopes (`[rank3]:`, `3: `)."""
    if not line.body_at:
        return line.text
    if line.text.isascii():
        return line.text[line.body_at :]
    return line.text.encode("utf-8", "surrogatepass")[line.body_at :].decode("utf-8", "replace")


def disjoint(slot: Slot[T], other: Slot[T]) -> bool:
    """Whether no side has a line in both."""
    return not mask(slot) & mask(other)


def mask(slot: Slot[T]) -> int:
    """Bit per side that has a line."""
    return sum(1 << at for at, line in enumerate(slot.lines) if line is not None)


def absorb(slot: Slot[T], other: Slot[T]) -> None:
    """Take over the lines of a disjoint slot, which is empty from then on."""
    slot.lines = [a if a is not None else b for a, b in zip(slot.lines, other.lines, strict=True)]
    other.lines = [None] * len(other.lines)


def pair_alike(
    slots: list[Slot[T]],
    group_of: Callable[[Slot[T]], Hashable],
    alike: Callable[[Slot[T], Slot[T]], bool],
) -> None:
    """Join, in place, slots that lack sides with earlier ones of their group that lack other sides and are
    alike; empty ones go. `alike` is asked with the earlier first."""
    waiting: dict[Hashable, deque[Slot[T]]] = defaultdict(deque)
    for slot in slots:
        if not slot.missing:
            continue
        candidates = waiting[group_of(slot)]
        for at in range(min(len(candidates), WORD_TRIES_MAX)):
            other = candidates[at]
            if not disjoint(slot, other) or not alike(other, slot):
                continue
            absorb(other, slot)
            other.words = True
            if not other.missing:
                del candidates[at]
            break
        else:
            candidates.append(slot)
            if len(candidates) > WORD_TRIES_MAX:
                candidates.popleft()
    slots[:] = [slot for slot in slots if any(slot.lines)]


class Waiting(Generic[T]):
    """Slots that lack a side, by key and by the sides they have: a partner is found in O(1)."""

    def __init__(self, *, within_ns: int | None = None, origins: Sequence[int] = ()) -> None:
        self._within_ns = within_ns
        self._origins = origins
        self._slots: dict[int, dict[int, deque[Slot[T]]]] = defaultdict(lambda: defaultdict(deque))

    def wait(self, slot: Slot[T]) -> None:
        """Keep a slot for later ones to meet."""
        self._slots[slot.key][mask(slot)].append(slot)

    def meet(self, slot: Slot[T], *, moved: bool = False) -> bool:
        """Move the slot's lines into the earliest waiting one that lacks just these sides."""
        sides = mask(slot)
        by_mask = self._slots.get(slot.key, {})
        for other_sides, queue in list(by_mask.items()):
            if other_sides & sides:
                continue
            while queue and self._too_old(queue[0], slot):
                queue.popleft()
            if queue and not self._too_old(slot, queue[0]):
                other = queue.popleft()
                absorb(other, slot)
                other.moved = other.moved or moved
                if other.missing:
                    self.wait(other)
                return True
        return False

    def meet_or_wait(self, slot: Slot[T], *, moved: bool) -> None:
        """Meet, or keep the slot for later ones."""
        if not self.meet(slot, moved=moved):
            self.wait(slot)

    def _too_old(self, slot: Slot[T], other: Slot[T]) -> bool:
        return (
            self._within_ns is not None and self._since(other) - self._since(slot) > self._within_ns
        )

    def _since(self, slot: Slot[T]) -> int:
        return slot.first.ts_ns - self._origins[slot.side]
