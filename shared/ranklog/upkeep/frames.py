"""Frames of a tenant that are not in its segments: what waits for its quota, and what is in quarantine."""

from __future__ import annotations

import time
from collections.abc import Iterable

from ranklog.access.meter import Meter
from ranklog.delete.actions import Action, record_action
from ranklog.ingest.allowance import Allowance
from ranklog.ingest.quarantine import expire
from ranklog.ingest.tenant_rules import TenantRules
from ranklog.ingest.waiting import Released, list_waiting, release
from ranklog.store.protocol import Store


def release_tenant(store: Store, tenant: str) -> Released:
    """Store what waits for the tenant's quota, as far as this hour has room. Raises what the store raises."""
    if next(iter(list_waiting(store, tenant)), None) is None:
        return Released()
    allowance = Allowance(Meter(store))
    try:
        return release(store, tenant, allowance=allowance, rules=TenantRules(store))
    finally:
        allowance.meter.flush()


def expire_quarantine(
    store: Store, tenants: Iterable[str | None], *, who: str, now_ns: int | None = None
) -> dict[str, int]:
    """Remove what was in quarantine for long enough (None: of frames that name nobody), and write in each
    tenant's log of actions what it was; frames by reason. Raises what the store raises."""
    now_ns = time.time_ns() if now_ns is None else now_ns
    total: dict[str, int] = {}
    for tenant in tenants:
        gone = expire(store, tenant, now_ns)
        if gone and tenant is not None:
            action = Action("quarantine.expire", now_ns, who, "kept long enough", {"frames": gone})
            record_action(store, tenant, action)
        for reason, frames in gone.items():
            total[reason] = total.get(reason, 0) + frames
    return total
