"""Whose a key is that frames are sent with: keys name their tenant, so that nobody need say it again.

The key of an API is looked at where the destination is one, the ingest key where frames go into a stream, in
Kinesis or on a disk: there it alone proves whose they are.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

_APIS = ("https://", "http://")
# store.disk_names.MARKER, which no training process imports.
_STORE_MARKER = "ranklog-store.json"


def key_tenant(destination: str | None, environ: Mapping[str, str]) -> str | None:
    """The tenant of the key that frames for a destination go with; None where there is none that names one."""
    found = _key(destination or "", environ)
    if found is None:
        return None
    # what it imports (base64, secrets) most jobs do without
    from ranklog.access.key_text import parse_key

    key = parse_key(found[1].strip())
    return key.tenant if key is not None and key.kind == found[0] else None


def contradiction(tenant: str, destination: str | None, environ: Mapping[str, str]) -> str:
    """What is wrong where lines of a tenant would go with another's key; "" where nothing is."""
    owner = key_tenant(destination, environ)
    if owner is None or owner == tenant:
        return ""
    where = "API key" if (destination or "").startswith(_APIS) else "ingest key"
    return (
        f"lines are of tenant {tenant!r}, and the {where} is of {owner!r}: set RANKLOG_TENANT={owner}, or leave "
        "it out, or take a key of that tenant"
    )


def _key(destination: str, environ: Mapping[str, str]) -> tuple[str, str] | None:
    """Its kind and text."""
    if destination.startswith(_APIS):
        text = environ.get("RANKLOG_API_KEY", "")
        return ("api", text) if text else None
    text = environ.get("RANKLOG_INGEST_KEY", "")
    path = environ.get("RANKLOG_INGEST_KEY_FILE", "")
    if not (text or path) or not _needs_proof(destination):
        return None
    if path and not text:
        try:
            with open(path, encoding="ascii") as file:
                text = file.read()
        except (OSError, ValueError):  # the agent's to tell: only it may be allowed to read it
            return None
    return ("ingest", text) if text else None


def _needs_proof(destination: str) -> bool:
    """Whether the seal of a frame alone tells the other side whose it is: a stream, in Kinesis or a directory."""
    from urllib.parse import unquote, urlsplit

    try:
        parts = urlsplit(destination)
    except ValueError:  # a host that is none: the agent's to tell
        return False
    if parts.scheme not in ("", "file"):
        return parts.scheme == "kinesis"
    path = unquote(parts.path) if parts.scheme else destination
    return bool(path) and not os.path.exists(os.path.join(path, _STORE_MARKER))
