"""Whose request it is, and what it may do: an authorizer's word, else the key's, else the one tenant's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ranklog.access.grant import ADMIN, READ, SCOPES, WRITE, Grant
from ranklog.api.keys import bearer_key
from ranklog.api.settings import Settings
from ranklog.errors import Unauthorized

# What an authorizer that names only a tenant vouches for: it says nothing of administration.
VOUCHED = frozenset([READ, WRITE])


def grant_of(event: Mapping[str, Any], settings: Settings) -> Grant:
    """The tenant and the scopes. Raises Unauthorized.

    `requestContext.authorizer.lambda` is set by a Lambda authorizer in front of the API and can't be
    by a client: `tenant`, and `scopes` between blanks.
    """
    authorizer = (event.get("requestContext") or {}).get("authorizer") or {}
    vouched = authorizer.get("lambda") or {}
    if vouched.get("tenant"):
        said = vouched.get("scopes")
        scopes = VOUCHED if said is None else frozenset(str(said).split()) & frozenset(SCOPES)
        return Grant(str(vouched["tenant"]), scopes)
    if settings.keys is not None:
        headers = {name.lower(): value for name, value in (event.get("headers") or {}).items()}
        key = bearer_key(headers.get("authorization"))
        if key is None:
            raise Unauthorized("this API needs a key", hint="Authorization: Bearer KEY")
        grant = settings.keys.grant_of(key)
        if grant is None:
            raise Unauthorized("nobody has this key")
        return grant
    if settings.tenant is None:
        raise Unauthorized("nobody says whose request this is")
    # This machine's own: who reaches a loopback address without keys reaches the store as well.
    return Grant(settings.tenant, frozenset([ADMIN]))
