"""A lease on a folder: it only saves work. Two that compact the same do no harm to each other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ranklog.compact.contents import Folder
from ranklog.errors import AlreadyExists, NotFound
from ranklog.layout import keys
from ranklog.limits import COMPACT_LEASE_S, SECOND_NS
from ranklog.store.protocol import Store


@contextmanager
def lease(store: Store, folder: Folder, now_ns: int) -> Iterator[bool]:
    """Whether nobody else seems to be at this folder; it is given back in the end."""
    name = folder.index_prefix.removeprefix(keys.index_prefix(folder.tenant)).rstrip("/")
    key = keys.lease_key(folder.tenant, name)
    taken = _take(store, key, now_ns)
    try:
        yield taken
    finally:
        if taken:
            store.delete(key)


def _take(store: Store, key: str, now_ns: int) -> bool:
    data = json.dumps({"until_ns": now_ns + COMPACT_LEASE_S * SECOND_NS}).encode()
    with suppress(AlreadyExists):
        store.put(key, data, if_absent=True)
        return True
    try:
        until_ns = int(json.loads(store.get(key))["until_ns"])
    except (NotFound, ValueError, KeyError, TypeError):
        until_ns = 0
    if until_ns > now_ns:
        return False
    store.put(key, data)  # its owner died
    return True
