"""Discrete events: a clock, functions that scale out, a rate that is limited.

Times are seconds of the model. Nothing here knows of logs; `tests/bench/test_scale_kernel.py` holds it to
what queueing theory has closed forms for.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

Action = Callable[[], None]


class Clock:
    """Runs what is due in the order of its time; what is due at once, in the order it was asked for."""

    def __init__(self) -> None:
        self.now = 0.0
        self._heap: list[tuple[float, int, Action]] = []
        self._count = itertools.count()

    def at(self, when: float, action: Action) -> None:
        """`action` at that time, or now where it is past."""
        heapq.heappush(self._heap, (max(when, self.now), next(self._count), action))

    def after(self, seconds: float, action: Action) -> None:
        """`action` so long from now."""
        self.at(self.now + seconds, action)

    def run(self, until: float) -> None:
        """Let time pass; what is due later stays."""
        heap = self._heap
        while heap and heap[0][0] <= until:
            self.now, _, action = heapq.heappop(heap)
            action()
        self.now = until


@dataclass(slots=True)
class Environment:
    """One execution environment of a function. `cold`: this is its first use; `last_s`: when its use
    before this one began."""

    number: int
    cold: bool = True
    last_s: float = -math.inf


@dataclass(slots=True)
class Pool:
    """A function's environments. Who finds none idle gets a new one, as long as there are fewer than
    `most` and new ones come no faster than `per_s`; else he waits his turn.

    `busy_s`: seconds that environments were in use, all together; `waited_s`: that callers waited.
    """

    clock: Clock
    most: float = math.inf
    per_s: float = math.inf
    made: int = 0
    used: int = 0
    peak: int = 0
    cold_starts: int = 0
    busy_s: float = 0.0
    waited_s: float = 0.0
    _idle: list[Environment] = field(default_factory=list)
    _waiting: deque[tuple[float, Callable[[Environment], None]]] = field(default_factory=deque)
    _next_new_s: float = 0.0
    _busy: int = 0
    _since: float = 0.0

    def warm(self, count: int) -> None:
        """So many have been in use before, as far as there may be so many."""
        for _ in range(int(min(count, self.most - self.made))):
            self._idle.append(Environment(self.made, cold=False))
            self.made += 1

    @property
    def waiting(self) -> int:
        """Callers who wait."""
        return len(self._waiting)

    @property
    def busy(self) -> int:
        """Environments in use."""
        return self._busy

    def take(self, use: Callable[[Environment], None]) -> None:
        """`use` with an environment, as soon as there is one; who uses it gives it back."""
        self._waiting.append((self.clock.now, use))
        self._serve()

    def give_back(self, environment: Environment) -> None:
        """It is idle from now on."""
        self._note()
        self._busy -= 1
        environment.cold = False
        self._idle.append(environment)  # the one used last is used next, as Lambda does
        self._serve()

    def settle(self) -> None:
        """Count what is in use up to now."""
        self._note()

    def _serve(self) -> None:
        while self._waiting:
            environment = self._get()
            if environment is None:
                return
            asked, use = self._waiting.popleft()
            self._note()
            self._busy += 1
            self.used += 1
            self.peak = max(self.peak, self._busy)
            self.waited_s += self.clock.now - asked
            self.cold_starts += environment.cold
            use(environment)
            environment.last_s = self.clock.now

    def _get(self) -> Environment | None:
        if self._idle:
            return self._idle.pop()
        if self.made >= self.most:
            return None
        if self._next_new_s > self.clock.now:
            self.clock.at(self._next_new_s, self._serve)
            return None
        if math.isfinite(self.per_s):
            self._next_new_s = max(self._next_new_s, self.clock.now) + 1 / self.per_s
        self.made += 1
        return Environment(self.made - 1)

    def _note(self) -> None:
        self.busy_s += self._busy * (self.clock.now - self._since)
        self._since = self.clock.now


@dataclass(slots=True)
class RateLimit:
    """So many a second, and `burst` at once; who comes too early is told how long to wait."""

    per_s: float
    burst: float = 1.0
    asked: int = 0
    slowed: int = 0
    _free_s: float = 0.0

    def wait_s(self, now: float, count: int = 1) -> float:
        """Seconds until the last of so many may go, which are reserved for them."""
        self.asked += count
        step = 1 / self.per_s
        self._free_s = max(self._free_s, now - self.burst * step) + step * count
        wait = max(0.0, self._free_s - now)
        self.slowed += count if wait > 0 else 0
        return wait
