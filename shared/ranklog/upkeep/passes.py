"""One pass over a tenant: merge what is small, let go of what is too old, sweep what was left behind.

Each can be stopped at any moment, repeated, and run beside others of its kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ranklog.client.reader import Reader
from ranklog.client.retention import Applied, apply_retention
from ranklog.compact.compacting import Compactor, CompactReport
from ranklog.delete.tombstones import load
from ranklog.layout import keys
from ranklog.limits import SECOND_NS, TMP_KEPT_S
from ranklog.store.protocol import Store


def compact_tenant(
    store: Store,
    tenant: str,
    now_ns: int,
    *,
    hours: Iterable[int] | None = None,
    after: str = "",
    has_time: Callable[[], bool] = lambda: True,
    dry_run: bool = False,
) -> CompactReport:
    """Merge and bundle, delete what has had its grace; see `Compactor.run`. Raises what the store raises."""
    compactor = Compactor(store, tenant, now_ns, load(store, tenant).hidden, dry_run)
    return compactor.run(hours, after=after, has_time=has_time)


def retain_tenant(reader: Reader, *, who: str) -> Applied:
    """Hide and remove what the reader's tenant keeps no longer. Raises what the store raises."""
    return apply_retention(reader, who=who, why="scheduled")


def sweep_tenant(store: Store, tenant: str, now_ns: int) -> int:
    """Delete temporary results that nobody took; returns how many.

    On AWS the bucket's lifecycle does so. Where the store can't say how old an object is it stays.
    """
    old_ns = now_ns - TMP_KEPT_S * SECOND_NS
    found = [
        item.key
        for item in store.list(keys.tmp_prefix(tenant))
        if item.modified_ns is not None and item.modified_ns < old_ns
    ]
    for key in found:
        store.delete(key)
    return len(found)
