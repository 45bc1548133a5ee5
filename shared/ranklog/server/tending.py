"""The role compact: every tenant's store is compacted, held to its retention, and swept, now and then."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from ranklog.client.reader import local_reader
from ranklog.errors import RanklogError
from ranklog.store.protocol import Store
from ranklog.upkeep.frames import expire_quarantine, release_tenant
from ranklog.upkeep.passes import compact_tenant, retain_tenant, sweep_tenant
from ranklog.upkeep.tenants import tenants

# Retention reads more than compaction, and a day is its unit.
RETAIN_EVERY_S = 3_600.0
# Between two looks at whether to stop.
LOOK_S = 0.5
WHO = "ranklog serve"


def tend_until(
    stopping: Callable[[], bool], store: Store, *, every_s: float, tell: Callable[[str], None]
) -> None:
    """A pass over all tenants, then a rest; what fails is told and tried at the next pass."""
    retained_s: float | None = None
    while not stopping():
        begun_s = time.monotonic()
        retain = retained_s is None or begun_s - retained_s >= RETAIN_EVERY_S
        tend_once(store, retain=retain, tell=tell, stopping=stopping)
        retained_s = begun_s if retain else retained_s
        while not stopping() and time.monotonic() - begun_s < every_s:
            time.sleep(LOOK_S)


def tend_once(
    store: Store, *, retain: bool, tell: Callable[[str], None], stopping: Callable[[], bool]
) -> None:
    """One pass. A tenant whose store can't be read keeps no other from its turn."""
    try:
        names = tenants(store)
    except RanklogError as error:
        tell(f"compact waits: {error.message}")
        return
    if retain:
        try:  # frames that name no tenant: nobody's turn, so once for all
            expire_quarantine(store, [None], who=WHO)
        except RanklogError as error:
            tell(f"quarantine: {error.message}")
    for tenant in names:
        if stopping():
            return
        works = [
            partial(_release, store, tenant, tell),
            partial(_compact, store, tenant, tell),
            partial(_sweep, store, tenant),
        ]
        if retain:
            works.insert(0, partial(_retain, store, tenant, tell))
            works.append(partial(_expire, store, tenant))
        for work in works:
            try:
                work()
            except RanklogError as error:
                tell(f"tenant {tenant}: {error.message}")


def _retain(store: Store, tenant: str, tell: Callable[[str], None]) -> None:
    done = retain_tenant(local_reader(store, tenant), who=WHO)
    if done.rows or done.removed:
        lines = sum(item.lines for item in done.rows)
        tell(
            f"tenant {tenant}: hid {lines:,} lines past retention, removed {len(done.removed):,} objects"
        )


def _compact(store: Store, tenant: str, tell: Callable[[str], None]) -> None:
    report = compact_tenant(store, tenant, time.time_ns())
    if report.merges or report.bundles or report.deleted:
        tell(
            f"tenant {tenant}: merged {report.merged:,} indexes into {report.merges:,}, "
            f"bundled {report.bundled:,} into {report.bundles:,}, deleted {report.deleted:,} objects"
        )
    for key, reason in report.failed.items():
        tell(f"tenant {tenant}: left as it is: {key}: {reason}")


def _sweep(store: Store, tenant: str) -> None:
    sweep_tenant(store, tenant, time.time_ns())


def _expire(store: Store, tenant: str) -> None:
    expire_quarantine(store, [tenant], who=WHO)


def _release(store: Store, tenant: str, tell: Callable[[str], None]) -> None:
    done = release_tenant(store, tenant)
    if done.frames:
        tell(
            f"tenant {tenant}: stored {done.frames:,} frames that waited for its quota, "
            f"{done.left:,} wait"
        )
