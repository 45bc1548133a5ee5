"""Whose request an HTTP API has: the answer of its Lambda authorizer (payload 2.0, simple responses).

The gateway remembers an answer for some seconds by the header alone, so that it holds for every route: what
a key allows goes into the context, and the api function decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ranklog.access.grant import SCOPES, KeyRing
from ranklog.api.keys import bearer_key
from ranklog.errors import Unauthorized

REFUSED: dict[str, Any] = {"isAuthorized": False}


def authorize(event: Mapping[str, Any], keys: KeyRing) -> dict[str, Any]:
    """`{"isAuthorized", "context": {"tenant", "scopes", "key"}}`; scopes stand between blanks, `key` is
    the key's id. Raises what the store raises: then nobody knows, and the gateway answers 500.
    """
    headers = {name.lower(): value for name, value in (event.get("headers") or {}).items()}
    key = bearer_key(headers.get("authorization"))
    try:
        grant = None if key is None else keys.grant_of(key)
    except Unauthorized:  # revoked, or expired
        return REFUSED
    if grant is None:
        return REFUSED
    scopes = " ".join(scope for scope in SCOPES if scope in grant.scopes)
    context = {"tenant": grant.tenant, "scopes": scopes, "key": grant.key_id}
    return {"isAuthorized": True, "context": context}
