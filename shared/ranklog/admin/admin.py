"""The calls of administration; every answer is the JSON object that the HTTP API has for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from ranklog.client.words import Restrictions
from ranklog.errors import BadInput
from ranklog.store.protocol import Store

Object = dict[str, Any]


class Admin(Protocol):
    """One tenant. `who` and `why` go into the log of actions, which is written before anything is done.

    Raises RanklogError.
    """

    def delete(
        self,
        query: str,
        given: Restrictions,
        *,
        who: str,
        why: str = "",
        groups: bool = False,
        dry_run: bool = False,
    ) -> Object:
        """Hide what matches now, or a launch whole: `{"deleted": [rows by stream], "lines", "kind",
        "launches", "tombstone", "completeness", "report"}`; `tombstone` None: nothing was done."""
        ...

    def audit(self, run: str | None = None, *, everything: bool = False) -> Object:
        """The fate of every frame: `{"frames", "segments", "state", "totals", "bytes_read"}`; of verified
        frames only with `everything`."""
        ...

    def actions(self) -> Object:
        """The log of what administrators did: `{"actions": [oldest first]}`."""
        ...

    def usage(self, given: Restrictions) -> Object:
        """What is stored by launch and day, and what came through the API in 24 hours."""
        ...

    def retention(self) -> Object:
        """`{"rules": [{"run", "keep_ns"}]}`."""
        ...

    def set_retention(self, run: str, keep_ns: int | None, *, who: str, why: str = "") -> Object:
        """Keep lines of runs whose name fits for so long, None: by no rule of this pattern. `{"rules"}`."""
        ...

    def apply_retention(self, *, who: str, why: str = "", dry_run: bool = False) -> Object:
        """Hide what is too old, remove what was hidden: `{"floors", "lines", "objects_removed", "pinned",
        "failed", "dry_run"}`."""
        ...

    def quarantine(self, *, unknown: bool = False) -> Object:
        """`{"entries": [...]}`; `unknown`: of records that name no tenant, which are no tenant's."""
        ...

    def quarantined(self, entry_id: str, *, unknown: bool = False) -> Object:
        """One record with what can be read of its header. Raises NotFound."""
        ...

    def replay(self, ids: Sequence[str], *, who: str, unknown: bool = False) -> Object:
        """Store these after all, or (none named) all that wait: `{"entries": [{"id", "state", "lines",
        "points", "reason", "detail"}], "counts": {"replayed", "already", "refused"}, "left"}`; `left`: how
        many wait beyond what one call takes."""
        ...


def open_admin(
    store: str | Store | None = None,
    api: str | None = None,
    tenant: str = "default",
    *,
    key: str | None = None,
) -> Admin:
    """Of one tenant of a store (a URL or a Store), or of an API, whose key names the tenant."""
    if (store is None) == (api is None):
        raise BadInput("a store or an API is administered", hint="give store=… or api=…")
    if api is not None:
        from ranklog.admin.remote import RemoteAdmin

        return RemoteAdmin(api, key)
    from ranklog.admin.local import LocalAdmin
    from ranklog.store.open import open_store

    assert store is not None
    return LocalAdmin(open_store(store) if isinstance(store, str) else store, tenant)
