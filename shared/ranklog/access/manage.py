"""Make, list and revoke keys: what `ranklog keys` does."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ranklog.access.grant import SCOPES
from ranklog.access.key_text import API, INGEST, new_key
from ranklog.access.records import (
    KeyRecord,
    get_record,
    list_records,
    put_record,
    record_of,
)
from ranklog.errors import BadInput, NotFound, TooLarge
from ranklog.layout import keys
from ranklog.limits import KEYS_PER_TENANT_MAX
from ranklog.store.protocol import Store


def create_api_key(
    store: Store,
    tenant: str,
    scopes: Iterable[str],
    *,
    now_ns: int,
    name: str = "",
    lifetime_ns: int | None = None,
) -> tuple[str, KeyRecord]:
    """(the key, which is nowhere else; its record). Raises BadInput, TooLarge."""
    asked = frozenset(scopes)
    unknown = sorted(asked - set(SCOPES))
    if unknown or not asked:
        raise BadInput(
            f"no scope {unknown[0]!r}" if unknown else "a key without a scope",
            hint=f"scopes are {', '.join(SCOPES)}",
        )
    if lifetime_ns is not None and lifetime_ns <= 0:
        raise BadInput("a key that has expired already", hint="--expires 90d")
    expires_ns = None if lifetime_ns is None else now_ns + lifetime_ns
    return _create(store, API, tenant, name, now_ns, scopes=asked, expires_ns=expires_ns)


def create_ingest_key(
    store: Store, tenant: str, *, now_ns: int, name: str = ""
) -> tuple[str, KeyRecord]:
    """(the key, its record). The tenant's earlier ones are rotated by it. Raises BadInput, TooLarge."""
    return _create(store, INGEST, tenant, name, now_ns)


def _create(
    store: Store,
    kind: str,
    tenant: str,
    name: str,
    now_ns: int,
    *,
    scopes: frozenset[str] = frozenset(),
    expires_ns: int | None = None,
) -> tuple[str, KeyRecord]:
    if sum(1 for _ in store.list(keys.access_prefix(tenant, kind))) >= KEYS_PER_TENANT_MAX:
        raise TooLarge(
            f"tenant {tenant!r} has {KEYS_PER_TENANT_MAX} {kind} keys",
            hint="`ranklog keys revoke ID --forget` removes one that nobody uses",
        )
    key = new_key(kind, tenant)
    record = replace(record_of(key, name, now_ns), scopes=scopes, expires_ns=expires_ns)
    put_record(store, record)
    return key.render(), record


def revoke_key(store: Store, tenant: str, key_id: str, *, now_ns: int) -> KeyRecord:
    """Revoke a key, of whichever kind; one that was stays as it was. Raises NotFound."""
    record = find_record(store, tenant, key_id)
    if record.revoked_ns is None:
        record = replace(record, revoked_ns=now_ns)
        put_record(store, record, again=True)
    return record


def forget_key(store: Store, tenant: str, key_id: str) -> KeyRecord:
    """Remove a key's record: nobody can use it, and no list shows it. Raises NotFound."""
    record = find_record(store, tenant, key_id)
    store.delete(keys.access_key(tenant, record.kind, key_id))
    return record


def find_record(store: Store, tenant: str, key_id: str) -> KeyRecord:
    """The key of that id. Raises NotFound."""
    try:
        return get_record(store, tenant, API, key_id)
    except NotFound:
        return get_record(store, tenant, INGEST, key_id)


def list_keys(store: Store, tenant: str) -> list[KeyRecord]:
    """The tenant's keys, oldest first."""
    return sorted(list_records(store, tenant), key=lambda record: record.created_ns)
