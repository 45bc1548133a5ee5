"""Who asks: a tenant by its key. Only hashes of keys are kept, and compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ranklog.errors import BadInput

_HASH = re.compile(r"[0-9a-f]{64}")


def hash_key(key: str) -> str:
    """SHA-256 of a key, in hexadecimal. Keys are long and random, so no slow hash is needed."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


class Keys:
    """Tenant -> hashes of its keys."""

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
            raise BadInput("no keys", hint='write {"default": ["<sha256 of a key>"]}')

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


def bearer_key(authorization: str | None) -> str | None:
    """The key of an `Authorization: Bearer KEY` header."""
    scheme, _, key = (authorization or "").partition(" ")
    return key.strip() or None if scheme.lower() == "bearer" else None
