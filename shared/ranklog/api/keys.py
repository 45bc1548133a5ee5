"""Keys of a file: hashes by tenant, for who keeps keys outside the store. They read and write.

Only hashes of keys are kept, and compared in constant time. Keys that expire, can be revoked without
a restart or administer are the store's (ranklog.access.api_keys).
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ranklog.access.grant import READ, WRITE, Grant
from ranklog.access.records import hash_key
from ranklog.errors import BadInput

__all__ = ["Keys", "bearer_key", "hash_key"]

_SCOPES = frozenset([READ, WRITE])
_HASH = re.compile(r"[0-9a-f]{64}")


class Keys:
    """A KeyRing: tenant -> hashes of its keys."""

    def __init__(self, hashes: Mapping[str, Sequence[str]]) -> None:
        self._hashes: list[tuple[str, str]] = []
        for tenant, known in hashes.items():
            for item in known:
                if not _HASH.fullmatch(item):
                    raise BadInput(
                        f"a key of tenant {tenant!r} is no SHA-256 in hexadecimal",
                        hint="printf %s KEY | sha256sum",
                    )
                self._hashes.append((item, tenant))
        if not self._hashes:
            raise BadInput(
                "no keys",
                hint='write {"default": ["<sha256 of a key>"]}, or keep keys in the store: '
                "`ranklog keys create`, `ranklog serve --keys store`",
            )

    @classmethod
    def read(cls, path: str | Path) -> Keys:
        """Keys of a JSON file `{"tenant": ["hash", …]}`. Raises BadInput."""
        try:
            found = json.loads(Path(path).read_text("utf-8"))
        except OSError as error:
            raise BadInput(f"can't read keys from {path}: {error.strerror or error}") from error
        except ValueError as error:
            raise BadInput(f"{path} is no JSON: {error}") from error
        if not isinstance(found, dict) or not all(
            isinstance(known, list) and all(isinstance(item, str) for item in known)
            for known in found.values()
        ):
            raise BadInput(f"{path} holds no keys", hint='write {"tenant": ["<sha256>", …]}')
        return cls(found)

    def tenant_of(self, key: str) -> str | None:
        """The tenant of a key, None for an unknown one. Looks at every hash, whichever fits."""
        asked = hash_key(key)
        found = None
        for known, tenant in self._hashes:
            if hmac.compare_digest(asked, known):
                found = tenant
        return found

    def grant_of(self, key: str) -> Grant | None:
        """See KeyRing."""
        tenant = self.tenant_of(key)
        return None if tenant is None else Grant(tenant, _SCOPES)


def bearer_key(authorization: str | None) -> str | None:
    """The key of an `Authorization: Bearer KEY` header."""
    scheme, _, key = (authorization or "").partition(" ")
    return key.strip() or None if scheme.lower() == "bearer" else None
