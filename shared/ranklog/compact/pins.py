"""What pinned questions look at: it is never deleted."""

from __future__ import annotations

import json
from dataclasses import dataclass

from ranklog.compact.contents import Held
from ranklog.errors import Corrupt, NotFound
from ranklog.layout import keys
from ranklog.layout.bundle import object_key
from ranklog.store.protocol import Store


@dataclass(frozen=True, slots=True)
class Pinned:
    """Keys of indexes and of segments that some pin names."""

    indexes: frozenset[str] = frozenset()
    segments: frozenset[str] = frozenset()

    def has_index(self, held: Held) -> bool:
        """Whether a pin names the object or an index in it."""
        return held.key in self.indexes or any(one.key in self.indexes for one in held.indexes)


def read_pins(store: Store, tenant: str) -> Pinned:
    """Raises Corrupt for a pin that can't be read: nobody knows what it keeps."""
    indexes: set[str] = set()
    segments: set[str] = set()
    for info in store.list(keys.pins_prefix(tenant)):
        try:
            body = json.loads(store.get(info.key))
            indexes.update(map(str, body["indexes"]))
            segments.update(str(segment[0]) for segment in body["segments"])
        except NotFound:
            continue
        except (ValueError, KeyError, TypeError, IndexError) as error:
            hint = "delete it, or bring it back; until then nothing is deleted"
            raise Corrupt(f"damaged pin: {info.key}", hint=hint) from error
    return Pinned(frozenset(indexes | set(map(object_key, indexes))), frozenset(segments))
