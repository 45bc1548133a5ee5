"""The handler over a store of this process: what `ranklog serve` and tests use."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from ranklog.access.grant import KeyRing
from ranklog.access.meter import Meter
from ranklog.api.admin import admin_of
from ranklog.api.app import Handler, make_api
from ranklog.api.observed import Observed
from ranklog.api.settings import Settings
from ranklog.api.sinks import DiskFrames, StoreFrames
from ranklog.client import Client
from ranklog.limits import RESULTS_BYTES_MAX
from ranklog.objectives.recorder import Recorder
from ranklog.store.prompt import Prompt
from ranklog.store.protocol import Store


def make_handler(
    store: Store,
    *,
    keys: KeyRing | None = None,
    tenant: str | None = "default",
    clock_ns: Callable[[], int] = time.time_ns,
    recorder: Recorder | None = None,
    stream: Path | None = None,
) -> Handler:
    """A handler that reads from a store and ingests frames into it, or puts them into the stream in a
    folder, which somebody else ingests."""
    prompt = Prompt(store)
    recorder = recorder or Recorder(prompt, background=True, clock_ns=clock_ns)
    settings = Settings(
        client_of=_Clients(store).of,
        admin_of=lambda tenant: admin_of(store, tenant),
        sink=StoreFrames(store, clock_ns, recorder)
        if stream is None
        else _disk_frames(stream, prompt),
        keys=keys,
        tenant=tenant,
        meter=Meter(prompt, clock_ns=clock_ns, background=True),
        observe=partial(_record, recorder),
    )
    return make_api(settings)


def _record(recorder: Recorder, observed: Observed) -> None:
    if observed.tenant is not None:
        recorder.add(observed.tenant, observed.measures())


def _disk_frames(folder: Path, store: Store) -> DiskFrames:
    from ranklog.access.seals import Seals
    from ranklog.stream.disk import DiskStream

    return DiskFrames(DiskStream(folder), Seals(store))


class _Clients:
    """One client per tenant, so that its indexes stay cached from request to request."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._clients: dict[str, Client] = {}
        self._lock = threading.Lock()

    def of(self, tenant: str) -> Client:
        """A tenant's client. Tenants come from keys, so there are few."""
        with self._lock:
            client = self._clients.get(tenant)
            if client is None:
                client = self._clients[tenant] = Client(
                    store=self._store, tenant=tenant, results_bytes=RESULTS_BYTES_MAX
                )
            return client
