"""Segments that no index names, and pointers that nobody follows any more: deleted by age.

A writer that stalled puts its segment again before it commits, so an orphan of that age is nobody's.
Its age is looked at once more right before it is deleted, and its bytes are kept until it is sure that
no commit came between.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ranklog.compact.contents import Contents, Folder, read_contents
from ranklog.errors import NotFound
from ranklog.layout import keys
from ranklog.limits import ORPHAN_AGE_S_MAX, POINTER_AGE_S_MAX, SECOND_NS, USAGE_KEPT_HOURS
from ranklog.store.protocol import ObjectInfo, Store


def orphans(
    listed: Iterable[ObjectInfo], contents: Sequence[Contents], pinned: frozenset[str], now_ns: int
) -> list[str]:
    """Of these segments the old ones that no index names. `listed` before `contents` was read: a
    commit in between is seen."""
    if any(one.failed for one in contents):
        return []  # what can't be read may name any
    named = pinned | named_segments(contents)
    return [info.key for info in listed if info.key not in named and _is_old(info, now_ns)]


def named_segments(contents: Iterable[Contents]) -> set[str]:
    """Segments that an index names."""
    heads = (index.head for one in contents for index in one.indexes().values())
    return {head.segment.key for head in heads if head.segment is not None}


def _is_old(info: ObjectInfo, now_ns: int, age_s: int = ORPHAN_AGE_S_MAX) -> bool:
    return info.modified_ns is not None and now_ns - info.modified_ns > age_s * SECOND_NS


def delete_orphan(store: Store, folder: Folder, key: str, now_ns: int) -> bool:
    """Whether it is gone: it was still old, and nobody committed it meanwhile."""
    if not any(info.key == key and _is_old(info, now_ns) for info in store.list(key)):
        return False
    try:
        data = store.get(key)
    except NotFound:
        return False
    store.delete(key)
    if key in named_segments(read_contents(store, folder)):
        store.put(key, data)
        return False
    return True


def old_pointers(store: Store, tenant: str, now_ns: int) -> list[str]:
    """Pointers to late arrivals that no tail looks at any more."""
    prefix = f"{keys.tenant_prefix(tenant)}arrivals/"
    listed = store.list(prefix)
    return [info.key for info in listed if _is_old(info, now_ns, POINTER_AGE_S_MAX)]


def old_usage(store: Store, tenant: str, now_ns: int) -> list[str]:
    """What processes counted in hours that nobody asks for any more."""
    prefix = f"{keys.tenant_prefix(tenant)}usage/"
    oldest = keys.usage_prefix(tenant, keys.hour_of(now_ns) - USAGE_KEPT_HOURS)
    found = []
    for info in store.list(prefix):  # by hour, the oldest first
        if info.key >= oldest:
            break
        found.append(info.key)
    return found
