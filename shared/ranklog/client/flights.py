"""Questions under way: who asks the same of the same indexes meanwhile waits for the one answer.

When an incident is looked at, many people and dashboards ask the same at once. The results that are kept
(client/results) help those who come later; this helps those who come before there is one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from ranklog.client.results import Kept, copied, report_of
from ranklog.model.answer import Report

NOTE = "shared with the same question asked at the same time"


@dataclass(slots=True)
class _Flight:
    done: threading.Event = field(default_factory=threading.Event)
    waiting: int = 0
    answer: Kept | None = None  # a copy that nobody changes; None: who waited asks again


class Flights:
    """Safe to use from many threads; a question is worked out by the thread that asked first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[Hashable, _Flight] = {}

    def join(self, place: Hashable, report: Report, work: Callable[[], Kept]) -> Kept:
        """What `work` answers, or what it answers a thread that came first with an equal `place`.

        An answer that misses something is not shared, nor is an error. `report`: what this asking cost.
        """
        with self._lock:
            flight = self._open.get(place)
            if flight is not None:
                flight.waiting += 1
            else:
                leading = self._open[place] = _Flight()
        if flight is None:
            return self._lead(place, leading, work)
        flight.done.wait()
        if flight.answer is None:
            return work()
        return copied(flight.answer, report_of(flight.answer.report, report, NOTE))

    def _lead(self, place: Hashable, flight: _Flight, work: Callable[[], Kept]) -> Kept:
        answer: Kept | None = None
        try:
            answer = work()
            return answer
        finally:
            with self._lock:
                del self._open[place]
            if answer is not None and flight.waiting and not answer.completeness.skipped_tasks:
                flight.answer = copied(answer, answer.report)
            flight.done.set()
