"""API keys of a store, looked up when they are used and remembered for a short time."""

from __future__ import annotations

import hmac
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from ranklog.access.grant import Grant
from ranklog.access.key_text import API, parse_key
from ranklog.access.records import KeyRecord, get_record, hash_key
from ranklog.errors import BadInput, NotFound, Unauthorized
from ranklog.limits import API_KEY_AGE_NS_MAX, API_KEYS_KNOWN_MAX
from ranklog.store.protocol import Store

_NOBODYS = "0" * 64


class StoreKeys:
    """A KeyRing. A revoked key stops within `age_ns_max`, a new one works within it.

    Threads may share it. One GET per key and that time; text that is no key costs none.
    """

    def __init__(
        self,
        store: Store,
        clock_ns: Callable[[], int] = time.time_ns,
        *,
        age_ns_max: int = API_KEY_AGE_NS_MAX,
    ) -> None:
        self._store = store
        self._clock_ns = clock_ns
        self._age_ns_max = age_ns_max
        self._known: OrderedDict[tuple[str, str], tuple[int, KeyRecord | None]] = OrderedDict()
        self._lock = threading.Lock()

    def grant_of(self, key: str) -> Grant | None:
        """See KeyRing."""
        parsed = parse_key(key)
        if parsed is None or parsed.kind != API:
            return None
        now_ns = self._clock_ns()
        record = self._record(parsed.tenant, parsed.key_id, now_ns)
        # Compared also where there is none: how long it takes tells nothing.
        known = hmac.compare_digest(hash_key(key), _NOBODYS if record is None else record.digest)
        if record is None or not known:
            return None
        if record.revoked_ns is not None:
            raise Unauthorized(f"the key {record.key_id} was revoked")
        if record.expires_ns is not None and now_ns >= record.expires_ns:
            raise Unauthorized(f"the key {record.key_id} has expired")
        return Grant(record.tenant, record.scopes, record.key_id)

    def _record(self, tenant: str, key_id: str, now_ns: int) -> KeyRecord | None:
        name = (tenant, key_id)
        with self._lock:
            known = self._known.get(name)
            if known is not None and 0 <= now_ns - known[0] < self._age_ns_max:
                self._known.move_to_end(name)
                return known[1]
        try:
            record: KeyRecord | None = get_record(self._store, tenant, API, key_id)
        except (NotFound, BadInput):  # BadInput: a tenant whose name fits no key of the store
            record = None
        with self._lock:
            self._known[name] = (now_ns, record)
            self._known.move_to_end(name)
            while len(self._known) > API_KEYS_KNOWN_MAX:
                self._known.popitem(last=False)
        return record
