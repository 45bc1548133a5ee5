"""What the handler works with. Lambda, `ranklog serve` and tests each make one of these."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ranklog.access.grant import KeyRing
from ranklog.access.meter import Meter
from ranklog.admin import Admin
from ranklog.api.observed import Observer
from ranklog.client import Client


class FrameSink(Protocol):
    """Takes frames of a tenant for good, or raises; a retryable error means: again later."""

    def accept(self, tenant: str, data: bytes) -> None:
        """Returns once the frame can't be lost any more."""
        ...


@dataclass(frozen=True, slots=True)
class Settings:
    """`client_of` gives a tenant's client; it is called for each request and may remember.

    Who asks is what an authorizer in front says, else the tenant of the key if there are `keys`,
    else `tenant`, who may do all: None refuses a request that nobody vouches for.
    `admin_of` gives who administers a tenant; without it nobody does here.
    `meter` counts what tenants use and holds them to their quotas. `begun` and `observe` are told of each
    request whose tenant is known, before it is worked on and when it is answered; neither may raise.
    """

    client_of: Callable[[str], Client]
    sink: FrameSink | None = None
    keys: KeyRing | None = None
    tenant: str | None = None
    meter: Meter | None = None
    admin_of: Callable[[str], Admin] | None = None
    begun: Observer | None = None
    observe: Observer | None = None
    clock_ns: Callable[[], int] = time.time_ns
