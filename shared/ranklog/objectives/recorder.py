"""What one process measures, on its way into the store: kept by tenant and minute, written now and then.

The first measurement of a tenant is written at once, later ones at most every `every_s`: what a process
measured in the last such time before it is killed is lost, and nothing else. Recording never fails what is
measured.
"""

from __future__ import annotations

import contextlib
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from ranklog.errors import RanklogError
from ranklog.limits import HOUR_NS, MEASURED_TENANTS_MAX, MEASURES_AGE_S_MAX
from ranklog.objectives.hours import Later, TenantHours
from ranklog.objectives.keeping import MINUTE_NS, Part, put_part, roll_up
from ranklog.objectives.measures import Measures
from ranklog.store.protocol import Store


@dataclass(slots=True)
class _Hour:
    """A tenant's hour in this process. `written_s`: when, by the monotonic clock."""

    hour: int
    part: Part = field(default_factory=Part)
    written_s: float = float("-inf")
    changed: bool = False


class Recorder:
    """Threads may share it. `background`: for processes that are not frozen between requests: a thread
    writes what nothing else would, and rolls closed hours up."""

    def __init__(
        self,
        store: Store,
        *,
        every_s: float = MEASURES_AGE_S_MAX,
        background: bool = False,
        clock_ns: Callable[[], int] = time.time_ns,
        clock_s: Callable[[], float] = time.monotonic,
        process: str = "",
    ) -> None:
        self._store = store
        self._every_s = every_s
        self._background = background
        self._clock_ns = clock_ns
        self._clock_s = clock_s
        self._process = process or uuid.uuid4().hex
        # of more tenants than are kept, all go
        self._hours = TenantHours[_Hour](lambda hour, _: _Hour(hour), list, MEASURED_TENANTS_MAX)
        self._later = Later(every_s, self.flush)
        self._lock = threading.Lock()

    def add(self, tenant: str, measures: Measures) -> None:
        """Take measurements of this minute; write what is due."""
        if not measures:
            return
        with self._lock:
            hour = self._hours.of(tenant, self._clock_ns())
            minute = self._clock_ns() % HOUR_NS // MINUTE_NS
            hour.part.minutes.setdefault(minute, Measures()).merge(measures)
            hour.changed = True
            due = self._clock_s() - hour.written_s >= self._every_s
            if not due and self._background:
                self._later.ask()
        if due:
            self._write(tenant, hour)
            self._write_ended()

    def flush(self) -> None:
        """Write what is not yet written, as far as the store takes it."""
        with self._lock:
            waiting = self._hours.changed()
        for tenant, hour in waiting:
            self._write(tenant, hour)
        self._write_ended()

    def _write_ended(self) -> None:
        with self._lock:
            ended = self._hours.take_over()
        for tenant, hour in ended:
            if hour.changed:
                self._write(tenant, hour)
            if self._background:
                with contextlib.suppress(RanklogError):  # the next hour's turn, then
                    roll_up(self._store, tenant, self._clock_ns())

    def _write(self, tenant: str, hour: _Hour) -> None:
        with self._lock:
            hour.changed = False
            hour.written_s = self._clock_s()
            part = Part({at: _copy(item) for at, item in hour.part.minutes.items()})
        try:
            put_part(self._store, tenant, hour.hour, self._process, part)
        except RanklogError:
            with self._lock:
                self._hours.not_written(tenant, hour)


def _copy(measures: Measures) -> Measures:
    copied = Measures()
    copied.merge(measures)
    return copied
