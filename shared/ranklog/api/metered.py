"""A client whose answers are counted: what each read goes to the tenant's account."""

from __future__ import annotations

import functools
from typing import Any, cast

from ranklog.access.meter import SCANNED, Meter
from ranklog.client import Client


def metered(client: Client, meter: Meter, tenant: str) -> Client:
    """The same client to whoever asks it; an answer's `bytes_read` is counted as scanned."""
    return cast(Client, _Metered(client, meter, tenant))


class _Metered:
    def __init__(self, client: Client, meter: Meter, tenant: str) -> None:
        self._client = client
        self._meter = meter
        self._tenant = tenant

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)
        return self._counted(found) if callable(found) else found

    def _counted(self, ask: Any) -> Any:
        @functools.wraps(ask)
        def asked(*words: Any, **options: Any) -> Any:
            answer = ask(*words, **options)
            read = getattr(getattr(answer, "report", None), "bytes_read", 0)
            self._meter.add(self._tenant, SCANNED, read)
            return answer

        return asked
