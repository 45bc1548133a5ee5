"""Whether a store keeps the promise on which exactly-once rests: a create-once PUT has one winner."""

from __future__ import annotations

import uuid

from ranklog.errors import AlreadyExists, BadInput
from ranklog.store.protocol import Store


def check_create_once(store: Store) -> None:
    """Put an object twice, create-once, and remove it. Raises BadInput where both succeed: some stores
    that speak S3 ignore `If-None-Match`. Raises what the store raises."""
    key = f"_probe/{uuid.uuid4().hex}"
    store.put(key, b"first", if_absent=True)
    try:
        store.put(key, b"second", if_absent=True)
    except AlreadyExists:
        return
    finally:
        store.delete(key)
    raise BadInput(
        f"{store.url} lets a PUT with If-None-Match replace an object, so two writers could undo each other",
        hint="use a store with conditional writes",
    )
