"""Whose request it is: an authorizer's word, else the key's tenant, else the one tenant served."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ranklog.api.keys import bearer_key
from ranklog.api.problems import Unauthorized
from ranklog.api.settings import Settings


def tenant_of(event: Mapping[str, Any], settings: Settings) -> str:
    """The tenant. Raises Unauthorized.

    `requestContext.authorizer.lambda.tenant` is set by a Lambda authorizer in front of the API and
    can't be by a client.
    """
    authorizer = (event.get("requestContext") or {}).get("authorizer") or {}
    vouched = (authorizer.get("lambda") or {}).get("tenant")
    if vouched:
        return str(vouched)
    if settings.keys is not None:
        headers = {name.lower(): value for name, value in (event.get("headers") or {}).items()}
        key = bearer_key(headers.get("authorization"))
        if key is None:
            raise Unauthorized("this API needs a key", hint="Authorization: Bearer KEY")
        tenant = settings.keys.tenant_of(key)
        if tenant is None:
            raise Unauthorized("nobody has this key")
        return tenant
    if settings.tenant is None:
        raise Unauthorized("nobody says whose request this is")
    return settings.tenant
