"""What one process keeps of each tenant's hour that runs, until it is written into the store.

An hour that is over waits until it was written; one that the store did not take is written again with the next.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Generic, Protocol, TypeVar

from ranklog.limits import HOUR_NS


class Kept(Protocol):
    """`hour` counts from the epoch; `changed`: since it was written."""

    hour: int
    changed: bool


H = TypeVar("H", bound=Kept)


class Later:
    """Calls `flush` once, `after_s` after it was asked to; asked meanwhile, not again. Who asks holds the lock
    that `flush` takes: what was changed before is seen by it."""

    def __init__(self, after_s: float, flush: Callable[[], None]) -> None:
        self._after_s = after_s
        self._flush = flush
        self._timer: threading.Timer | None = None

    def ask(self) -> None:
        if self._timer is None:
            self._timer = threading.Timer(self._after_s, self._call)
            self._timer.daemon = True
            self._timer.start()

    def _call(self) -> None:
        self._timer = None
        self._flush()


class TenantHours(Generic[H]):
    """Of at most `tenants_max` tenants at once; then those that `idle` names go. Who calls holds the lock."""

    def __init__(
        self,
        begin: Callable[[int, H | None], H],
        idle: Callable[[dict[str, H]], Iterable[str]],
        tenants_max: int,
    ) -> None:
        """`begin` makes a tenant's kept of an hour, from that of its hour before."""
        self.running: dict[str, H] = {}
        self._begin = begin
        self._idle = idle
        self._tenants_max = tenants_max
        self._over: list[tuple[str, H]] = []

    def of(self, tenant: str, now_ns: int) -> H:
        """The tenant's of the hour that runs."""
        hour = now_ns // HOUR_NS
        known = self.running.get(tenant)
        if known is not None and known.hour == hour:
            return known
        if known is not None:
            self._over.append((tenant, known))
        elif len(self.running) >= self._tenants_max:
            for name in list(self._idle(self.running)):
                self._over.append((name, self.running.pop(name)))
        fresh = self.running[tenant] = self._begin(hour, known)
        return fresh

    def changed(self) -> list[tuple[str, H]]:
        """Those of hours that run with something that is not written."""
        return [(name, kept) for name, kept in self.running.items() if kept.changed]

    def take_over(self) -> list[tuple[str, H]]:
        """Those of hours that are over and were not taken before."""
        taken, self._over = self._over, []
        return taken

    def not_written(self, tenant: str, kept: H) -> None:
        """It could not be written: again with the next."""
        kept.changed = True
        if self.running.get(tenant) is not kept:
            self._over.append((tenant, kept))
