"""Which roles a server has, and where its stream lies."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ranklog.errors import BadInput

API, INGEST, COMPACT = "api", "ingest", "compact"
ROLES = (API, INGEST, COMPACT)


def parse_roles(text: str) -> frozenset[str]:
    """`api,ingest`. Raises BadInput."""
    named = [name.strip() for name in text.split(",")]
    unknown = [name for name in named if name not in ROLES]
    if unknown:
        raise BadInput(f"no role {unknown[0]!r}", hint="api, ingest, compact, with commas")
    return frozenset(named)


def default_stream(data: Path, store_url: str) -> Path:
    """The folder beside the user's local store where frames for a store wait: each store has its own."""
    name = hashlib.blake2b(store_url.encode(), digest_size=6).hexdigest()
    return data.with_name(f"{data.name}-stream-{name}")
