"""A lease on a folder: it only saves work. Two that compact the same do no harm to each other."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ranklog.compact.contents import Folder
from ranklog.errors import AlreadyExists, NotFound, Throttled, Unavailable
from ranklog.layout import keys
from ranklog.limits import COMPACT_LEASE_S, SECOND_NS
from ranklog.store.protocol import Store

_NAME = uuid.uuid4().hex


def this_process() -> str:
    """A name that no other process has."""
    return f"{_NAME}.{os.getpid()}"


@contextmanager
def lease(store: Store, folder: Folder, now_ns: int, owner: str) -> Iterator[bool]:
    """Whether nobody else seems to be at this folder; it is given back in the end. Where that fails, the
    same owner takes it again the next time, and others when it is old."""
    name = folder.index_prefix.removeprefix(keys.index_prefix(folder.tenant)).rstrip("/")
    key = keys.lease_key(folder.tenant, name)
    taken = _take(store, key, now_ns, owner)
    try:
        yield taken
    finally:
        if taken:
            with suppress(Unavailable, Throttled):
                store.delete(key)


def _take(store: Store, key: str, now_ns: int, owner: str) -> bool:
    data = json.dumps({"until_ns": now_ns + COMPACT_LEASE_S * SECOND_NS, "owner": owner}).encode()
    with suppress(AlreadyExists):
        store.put(key, data, if_absent=True)
        return True
    until_ns, holder = 0, ""
    with suppress(NotFound, ValueError, KeyError, TypeError):
        held = json.loads(store.get(key))
        until_ns, holder = int(held["until_ns"]), str(held.get("owner", ""))
    if until_ns > now_ns and holder != owner:
        return False
    store.put(key, data)  # its owner died, or could not give it back
    return True
