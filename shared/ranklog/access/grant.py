"""What a key allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ranklog.errors import Forbidden

READ = "read"
WRITE = "write"
ADMIN = "admin"
SCOPES = (READ, WRITE, ADMIN)


@dataclass(frozen=True, slots=True)
class Grant:
    """A tenant, and what may be done in its name; `admin` includes the others."""

    tenant: str
    scopes: frozenset[str]
    key_id: str = ""

    def require(self, scope: str) -> None:
        """Raises Forbidden where the key does not allow it."""
        if scope not in self.scopes and ADMIN not in self.scopes:
            held = ", ".join(sorted(self.scopes)) or "nothing"
            raise Forbidden(
                f"this needs a key with the scope {scope}, yours has {held}",
                hint=f"ranklog keys create --scope {scope}",
            )


class KeyRing(Protocol):
    """Knows keys."""

    def grant_of(self, key: str) -> Grant | None:
        """What a key allows; None for one that is not known here.

        Raises Unauthorized for one that is known and can't be used, Unavailable where nobody knows.
        """
        ...


class KeyRings:
    """Several rings as one: the first that knows a key has the word."""

    def __init__(self, *rings: KeyRing) -> None:
        self._rings = rings

    def grant_of(self, key: str) -> Grant | None:
        """See KeyRing."""
        for ring in self._rings:
            grant = ring.grant_of(key)
            if grant is not None:
                return grant
        return None
