"""What the store keeps of a key: of an API key its hash, of an ingest key the secret itself.

    <tenant>/config/keys/api/<id>.json
    <tenant>/config/keys/ingest/<id>.json

A record is put once, and once more when it is revoked; nothing else changes it, so that no writer
undoes a revocation. Ingest keys can't be hashed, since they are computed with: they are as secret as
the store (encryption at rest there, files of mode 0600 in a folder).
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from ranklog.access.grant import SCOPES
from ranklog.access.key_text import API, ID, INGEST, KeyText
from ranklog.errors import BadInput, Corrupt, NewerVersion, NotFound
from ranklog.layout import keys
from ranklog.store.protocol import Store

VERSION = 1
NAME_CHARS_MAX = 100


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """A key as stored; of `digest` and `secret` one is set. Times in ns since the epoch."""

    kind: str
    tenant: str
    key_id: str
    name: str
    created_ns: int
    scopes: frozenset[str] = frozenset()
    digest: str = ""
    secret: bytes = b""
    expires_ns: int | None = None
    revoked_ns: int | None = None

    def to_json(self) -> dict[str, Any]:
        """What people may see: neither hash nor secret."""
        return {
            "id": self.key_id,
            "kind": self.kind,
            "name": self.name or None,
            "scopes": [scope for scope in SCOPES if scope in self.scopes],
            "created_ns": self.created_ns,
            "expires_ns": self.expires_ns,
            "revoked_ns": self.revoked_ns,
        }


def hash_key(key: str) -> str:
    """SHA-256 of a key, in hexadecimal. Keys are long and random, so no slow hash is needed."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def record_of(key: KeyText, name: str, created_ns: int) -> KeyRecord:
    """The record of a new key, without scopes and expiry. Raises BadInput for its name."""
    if len(name) > NAME_CHARS_MAX or not name.isprintable():
        raise BadInput(
            f"{name[:40]!r} is no name of a key",
            hint=f"at most {NAME_CHARS_MAX} characters that can be shown",
        )
    made = KeyRecord(key.kind, key.tenant, key.key_id, name, created_ns)
    if key.kind == API:
        return replace(made, digest=hash_key(key.render()))
    return replace(made, secret=key.secret)


def put_record(store: Store, record: KeyRecord, *, again: bool = False) -> None:
    """Store a new record, or (`again`) a known one that was revoked."""
    key = keys.access_key(record.tenant, record.kind, record.key_id)
    store.put(key, _encode(record), if_absent=not again)
    path = store.local_path(key)
    if path is not None:
        with contextlib.suppress(OSError):  # a file system without modes
            path.chmod(0o600)


def get_record(store: Store, tenant: str, kind: str, key_id: str) -> KeyRecord:
    """A key's record. Raises NotFound, Corrupt, NewerVersion."""
    if not ID.fullmatch(key_id):
        raise NotFound(f"no key {key_id[:40]!r}", hint="ranklog keys list")
    try:
        data = store.get(keys.access_key(tenant, kind, key_id))
    except NotFound as error:
        raise NotFound(
            f"tenant {tenant!r} has no {kind} key {key_id}", hint="ranklog keys list"
        ) from error
    return _decode(data, tenant, kind, key_id)


def list_records(store: Store, tenant: str) -> Iterator[KeyRecord]:
    """All keys of a tenant, revoked and expired ones too: of the API, then of ingest."""
    for kind in (API, INGEST):
        yield from list_kind(store, tenant, kind)


def list_kind(store: Store, tenant: str, kind: str) -> Iterator[KeyRecord]:
    """A tenant's keys of one kind."""
    prefix = keys.access_prefix(tenant, kind)
    for info in store.list(prefix):
        key_id = info.key.removeprefix(prefix).removesuffix(".json")
        if ID.fullmatch(key_id):
            with contextlib.suppress(NotFound):  # removed since it was listed
                yield get_record(store, tenant, kind, key_id)


def _encode(record: KeyRecord) -> bytes:
    said = record.to_json() | {"version": VERSION, "tenant": record.tenant, "name": record.name}
    if record.kind == API:
        said["hash"] = record.digest
    else:
        said["secret"] = base64.b64encode(record.secret).decode()
    return json.dumps(said, indent=1).encode()


def _decode(data: bytes, tenant: str, kind: str, key_id: str) -> KeyRecord:
    where = f"the record of key {key_id} of tenant {tenant!r}"
    try:
        said = json.loads(data)
        if said["version"] > VERSION:
            raise NewerVersion(f"{where} is of version {said['version']}", hint="update ranklog")
        if (said["tenant"], said["kind"], said["id"]) != (tenant, kind, key_id):
            raise Corrupt(f"{where} is another key's")
        return KeyRecord(
            kind,
            tenant,
            key_id,
            str(said["name"]),
            int(said["created_ns"]),
            frozenset(said["scopes"]) & frozenset(SCOPES),
            str(said.get("hash", "")),
            base64.b64decode(said.get("secret", ""), validate=True),
            _time(said["expires_ns"]),
            _time(said["revoked_ns"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError, binascii.Error) as error:
        raise Corrupt(f"{where} can't be read: {error}") from error


def _time(value: Any) -> int | None:
    return None if value is None else int(value)
