"""Hour markers that a process knows to be in the store, so that it puts each once and not with every batch.

A marker is deleted for two reasons (client/retention): its launch is deleted whole, so that nothing of it is shown
again, whatever comes; or its hour lies RETENTION_NOTES_NS below the floor, and a floor is never later than now. An
hour that is younger than that keeps its marker whatever the rules say or said, and only of such hours
anything is remembered, with days to spare for clocks that differ. What somebody deleted by hand is put again when
the memory of it is MARKERS_AGE_S_MAX old.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from ranklog.ingest.commit import Place, put_markers
from ranklog.limits import (
    HOUR_NS,
    MARKERS_AGE_S_MAX,
    MARKERS_HOUR_AGE_NS_MAX,
    MARKERS_KNOWN_MAX,
)
from ranklog.store.protocol import Store

# Run, launch, and the hour or the day of late arrivals.
_Marker = tuple[str, str, str, int | str]


class Markers:
    """Puts markers into one store. Threads may share it: then one may be put twice, which changes nothing."""

    def __init__(
        self,
        store: Store,
        *,
        clock_s: Callable[[], float] = time.monotonic,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._store = store
        self._clock_s = clock_s
        self._clock_ns = clock_ns
        self._known: dict[_Marker, float] = {}  # when it was put, or found there; oldest first

    def put(self, place: Place, launches: Iterable[tuple[str, str]]) -> None:
        """All are in the store when this returns. Raises what the store raises."""
        now_s = self._clock_s()
        for run, launch in sorted(set(launches)):
            hour = place.late_day if place.hour is None else place.hour
            marker = (place.tenant, run, launch, hour)
            put_s = self._known.get(marker)
            if put_s is not None and now_s - put_s < MARKERS_AGE_S_MAX:
                continue
            put_markers(self._store, place, [(run, launch)])
            if self._may_keep(place):
                self._keep(marker, now_s)

    def _may_keep(self, place: Place) -> bool:
        """Whether nobody deletes it meanwhile; retention leaves those of late arrivals where they are."""
        if place.hour is None:
            return True
        return self._clock_ns() - (place.hour + 1) * HOUR_NS < MARKERS_HOUR_AGE_NS_MAX

    def _keep(self, marker: _Marker, now_s: float) -> None:
        self._known.pop(marker, None)
        if len(self._known) >= MARKERS_KNOWN_MAX:
            self._known = dict(list(self._known.items())[MARKERS_KNOWN_MAX // 2 :])
        self._known[marker] = now_s
