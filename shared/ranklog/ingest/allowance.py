"""What a tenant may still put into the store this hour, of frames that came by way of a stream.

The API refuses what is over a tenant's quota, and the agent keeps it. A frame that a producer put into
Kinesis itself can't be refused any more: what is over the quota waits in the store (`ingest.waiting`)
until there is room, and nobody else waits for it.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable

from ranklog.access.meter import PARKED, STREAMED, Meter
from ranklog.errors import OverQuota


class Allowance:
    """Admits frames, and counts those that are stored. For one thread; `Meter` says how late it knows of
    what other processes count."""

    def __init__(self, meter: Meter) -> None:
        self.meter = meter
        self._asked: Counter[str] = Counter()

    def begin(self) -> None:
        """A batch begins: what was asked for an earlier one that was not stored was not used."""
        self._asked.clear()

    def ask(self, tenant: str, length: int) -> None:
        """Room for a frame. Raises OverQuota where the tenant has none left this hour."""
        self.meter.check(tenant, STREAMED, self._asked[tenant])
        self._asked[tenant] += length

    def settle(self, parked: Iterable[str] = ()) -> None:
        """The batch is stored; `parked`: the tenant of each frame that waits. Counts what is used."""
        for tenant, length in self._asked.items():
            self.meter.add(tenant, STREAMED, length)
        for tenant in parked:
            self.meter.add(tenant, PARKED, 1)
        self._asked.clear()
        self.meter.flush_due()

    def has_room(self, tenant: str) -> bool:
        """Whether a frame would be admitted now."""
        with contextlib.suppress(OverQuota):
            self.meter.check(tenant, STREAMED, self._asked[tenant])
            return True
        return False
