"""Which records stay in order with each other: those of one host of one run of one tenant."""

from __future__ import annotations

import hashlib
from urllib.parse import quote

# Kinesis takes 256 characters.
PARTITION_KEY_MAX = 256


def partition_key(tenant: str, run: str, host: str | None, part: int | None = None) -> str:
    """`<tenant>/<run>/<host>`, percent-encoded, so that no two hosts share a key by their names; with
    `/<part>` for what need not stay in order with the rest.

    A key over PARTITION_KEY_MAX ends in a hash of the whole.
    """
    names = (tenant, run, host or "", *(() if part is None else (str(part),)))
    key = "/".join(quote(name, safe="", errors="surrogatepass") for name in names)
    if len(key) <= PARTITION_KEY_MAX:
        return key
    digest = hashlib.sha256(key.encode()).hexdigest()[:32]
    return f"{key[: PARTITION_KEY_MAX - 33]}~{digest}"
