"""Whose objects a store holds."""

from __future__ import annotations

from ranklog.layout import keys
from ranklog.store.protocol import Store


def tenants(store: Store) -> list[str]:
    """Every tenant with an object, sorted by its folder. Raises what the store raises."""
    folders = (folder.rstrip("/") for folder in store.list_folders(""))
    # what begins with `_` is ours: a tenant's own `_` is encoded
    named = (keys.decode_name(part) for part in folders if not part.startswith("_"))
    return [tenant for tenant in named if _is_ours(store, tenant)]


def _is_ours(store: Store, tenant: str) -> bool:
    """Whether ranklog wrote in that folder: a bucket may hold other things, too."""
    prefix = keys.tenant_prefix(tenant)
    written = {prefix + name + "/" for name in ("config", "data", "index", "runs")}
    return any(folder in written for folder in store.list_folders(prefix))
