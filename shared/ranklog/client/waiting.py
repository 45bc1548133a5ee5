"""Frames of the tenant that ingest holds back: why lines that are missing may yet come by themselves."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ranklog.layout import keys
from ranklog.limits import METER_AGE_S_MAX
from ranklog.store.protocol import Store


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
