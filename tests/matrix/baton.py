"""Tasks that work at once, one step of one of them at a time, in an order that a seed decides.

Each task is a thread that runs only while it holds the baton. It gives the baton back between the steps
of its work, so two of them meet in any order of steps, and in the same one when the seed is the same.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

# Nobody gives the baton back for so long: something waits for what a paused task holds.
STUCK_S = 120.0
# Steps that a task does at most before another may have its turn.
STEPS_AT_ONCE = 6


class Stuck(Exception):
    """Paused tasks wait for one another: a mistake of the matrix, or a lock held across a request."""


class Task:
    """One thread of work. `result` or `error` when it is `done`; `stalled`: until it is released."""

    def __init__(self, name: str, work: Callable[[Task], Any], stage: Stage) -> None:
        self.name = name
        self.done = self.stalled = False
        self.result: Any = None
        self.error: BaseException | None = None
        self.steps_left = 0
        self._stage = stage
        self._gate = threading.Semaphore(0)
        self._work = work
        self._thread = threading.Thread(target=self._run, name=f"matrix-{name}", daemon=True)
        self._thread.start()

    def pause(self) -> None:
        """Between two steps: somebody else may have his turn. Other threads than ours go on."""
        if threading.current_thread() is not self._thread:
            return
        self.steps_left -= 1
        if self.steps_left < 0:
            self._give_back()

    def stall(self) -> None:
        """Stop here until somebody releases the task."""
        if threading.current_thread() is self._thread:
            self.stalled = True
            self._give_back()

    def go_on(self, steps: int) -> None:
        """By the stage: the baton is the task's."""
        self.steps_left = steps
        self._gate.release()

    def _give_back(self) -> None:
        self._stage.back.release()
        self._gate.acquire()

    def _run(self) -> None:
        self._gate.acquire()
        try:
            self.result = self._work(self)
        except BaseException as error:
            self.error = error
        self.done = True
        self._stage.back.release()


class Stage:
    """Where tasks meet. Used by one thread, which waits while a task has the baton."""

    def __init__(self, rng: random.Random) -> None:
        self.back = threading.Semaphore(0)
        self.tasks: list[Task] = []
        self._rng = rng

    def add(self, name: str, work: Callable[[Task], Any]) -> Task:
        """A task; it begins when the stage runs."""
        task = Task(name, work, self)
        self.tasks.append(task)
        return task

    def run(self) -> list[Task]:
        """Until every task is done or stalled; those that are done by now, which leave the stage."""
        while runnable := [task for task in self.tasks if not (task.done or task.stalled)]:
            self._rng.choice(runnable).go_on(self._rng.randrange(STEPS_AT_ONCE))
            if not self.back.acquire(timeout=STUCK_S):
                names = ", ".join(task.name for task in self.tasks if not task.done)
                raise Stuck(f"none of {names} gives the baton back")
        ended = [task for task in self.tasks if task.done]
        self.tasks = [task for task in self.tasks if not task.done]
        return ended

    def release(self, share: float = 1.0) -> None:
        """Stalled tasks go on with the next run; of each this is as likely as `share`."""
        for task in self.tasks:
            if task.stalled and self._rng.random() < share:
                task.stalled = False
