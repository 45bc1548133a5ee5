"""Frames of the tenant that ingest holds back, or has set aside: where lines that are missing may be."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import islice
from typing import Any

from ranklog.layout import keys
from ranklog.limits import METER_AGE_S_MAX
from ranklog.store.protocol import Store

# What an error says of frames is counted up to here.
_COUNTED_MAX = 1_000
# What lies beside a frame in quarantine.
_NOTE, _REPLAYED = ".json", ".replayed.json"


class WaitingFrames:
    """Listed where an answer is not complete, at most every METER_AGE_S_MAX. Threads may share it."""

    def __init__(
        self, store: Store, tenant: str, clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._store, self._tenant, self._clock_s = store, tenant, clock_s
        self._known: tuple[float, list[dict[str, Any]]] = (float("-inf"), [])

    def load(self) -> list[dict[str, Any]]:
        """Members of `completeness.waiting`. Raises what the store raises."""
        read_s, found = self._known
        now_s = self._clock_s()
        if now_s - read_s >= METER_AGE_S_MAX:
            frames = sum(1 for _ in self._store.list(keys.waiting_prefix(self._tenant)))
            found = [{"reason": "over_quota", "frames": frames}] if frames else []
            self._known = now_s, found
        return found


def held_back(store: Store, tenant: str) -> str:
    """A hint that what is not stored may be in frames that wait or are in quarantine; "" where there are
    none. Raises what the store raises."""
    waiting, aside = held_back_counts(store, tenant)
    said = [
        f"{counted(frames)} {what}"
        for frames, what in ((waiting, "for the tenant's quota"), (aside, "in quarantine"))
        if frames
    ]
    if not said:
        return ""
    return f"frames wait ({', '.join(said)}), its lines may be in them: ranklog quarantine list"


def held_back_counts(store: Store, tenant: str) -> tuple[int, int]:
    """Frames that wait for the tenant's quota, and frames in its quarantine; each counted up to 1,000. Raises
    what the store raises."""
    waiting = sum(1 for _ in islice(store.list(keys.waiting_prefix(tenant)), _COUNTED_MAX))
    listed = islice(store.list(keys.quarantine_prefix(tenant)), 3 * _COUNTED_MAX)  # frame and notes
    names = {item.key for item in listed}
    aside = sum(not key.endswith(_NOTE) and key + _REPLAYED not in names for key in names)
    return waiting, min(aside, _COUNTED_MAX)


def counted(frames: int) -> str:
    """A count of `held_back_counts` in words."""
    return f"{frames:,}" if frames < _COUNTED_MAX else f"{_COUNTED_MAX:,} and more"
