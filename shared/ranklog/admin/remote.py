"""Administration over the HTTP API."""

from __future__ import annotations

from collections.abc import Sequence

from ranklog.admin.admin import Object
from ranklog.client.remote import Remote
from ranklog.client.words import Restrictions
from ranklog.errors import BadInput


class RemoteAdmin:
    """See Admin. The API puts the key's id before `who`."""

    def __init__(self, url: str, key: str | None = None) -> None:
        self._ask = Remote(url, key).ask

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
        words = {**given, "query": query, "who": who, "why": why}
        return self._ask("POST", "/v1/delete", {**words, "groups": groups, "dry_run": dry_run})

    def audit(self, run: str | None = None, *, everything: bool = False) -> Object:
        return self._ask("GET", "/v1/audit", {"run": run, "all": everything or None})

    def actions(self) -> Object:
        return self._ask("GET", "/v1/actions", {})

    def usage(self, given: Restrictions) -> Object:
        return self._ask("GET", "/v1/usage", dict(given))

    def retention(self) -> Object:
        return self._ask("GET", "/v1/retention", {})

    def set_retention(self, run: str, keep_ns: int | None, *, who: str, why: str = "") -> Object:
        keep = "none" if keep_ns is None else f"{keep_ns}ns"
        words = {"run": run, "keep": keep, "who": who, "why": why}
        return self._ask("POST", "/v1/retention", words)

    def apply_retention(self, *, who: str, why: str = "", dry_run: bool = False) -> Object:
        words = {"who": who, "why": why, "dry_run": dry_run}
        return self._ask("POST", "/v1/retention/apply", words)

    def quarantine(self, *, unknown: bool = False) -> Object:
        _refuse_unknown(unknown)
        return self._ask("GET", "/v1/quarantine", {})

    def quarantined(self, entry_id: str, *, unknown: bool = False) -> Object:
        _refuse_unknown(unknown)
        [found] = self._ask("GET", "/v1/quarantine", {"id": entry_id})["entries"]
        return dict(found)

    def replay(self, ids: Sequence[str], *, who: str, unknown: bool = False) -> Object:
        _refuse_unknown(unknown)
        return self._ask("POST", "/v1/quarantine/replay", {"ids": list(ids), "who": who})


def _refuse_unknown(unknown: bool) -> None:
    if unknown:
        raise BadInput("what names no tenant is nobody's key's", hint="give --store")
