"""`ranklog serve`: the HTTP API over a store on this machine."""

from __future__ import annotations

import argparse
import signal
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from ranklog.cli.console import Console
from ranklog.cli.source import open_store_of
from ranklog.errors import BadInput

if TYPE_CHECKING:
    from ranklog.access.grant import KeyRing
    from ranklog.api.keys import Keys
    from ranklog.api.serve import Handler
    from ranklog.store.protocol import Store

# In place of a file: keys are the store's alone.
STORE_KEYS = "store"


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Serve until interrupted or told to stop."""
    from ranklog.api.local import make_handler
    from ranklog.api.serve import Tls, make_server, parse_listen
    from ranklog.api.workers import (
        WORKERS_MAX,
        built_when_asked,
        serve_in_processes,
        workers_default,
    )

    host, port = parse_listen(arguments.listen)
    from_file = _file_keys(arguments.keys)
    if bool(arguments.tls_cert) != bool(arguments.tls_key):
        raise BadInput("a certificate and its key go together", hint="--tls-cert and --tls-key")
    tls = Tls(Path(arguments.tls_cert), Path(arguments.tls_key)) if arguments.tls_cert else None
    workers = arguments.workers or workers_default()
    if workers > WORKERS_MAX:
        raise BadInput(f"--workers {workers}, limit {WORKERS_MAX}", hint="one per core is enough")
    store, _ = open_store_of(arguments, create=True)

    def build() -> Handler:
        ours, tenant = open_store_of(arguments, create=False)
        return make_handler(ours, keys=_ring(arguments.keys, from_file, ours), tenant=tenant)

    handler = built_when_asked(build)
    server = make_server(
        handler, host=host, port=port, tls=tls, has_keys=arguments.keys is not None
    )
    scheme = "https" if tls else "http"
    shown = f"[{host}]" if ":" in host else host
    url = f"{scheme}://{shown}:{server.server_address[1]}"
    if console.json:
        console.object({"url": url, "store": store.url})
    else:
        console.line(f"serving {store.url} at {url} (Ctrl-C stops)")
    console.close()
    signal.signal(signal.SIGTERM, _stop)
    try:
        if workers == 1:
            server.serve_forever()
        else:
            serve_in_processes(server, workers)
    finally:
        server.server_close()
    return 0


def _file_keys(named: str | None) -> Keys | None:
    """Read before anything is served, so that a bad file is an error of the command."""
    from ranklog.api.keys import Keys

    return None if named in (None, STORE_KEYS) else Keys.read(named)


def _ring(named: str | None, from_file: Keys | None, store: Store) -> KeyRing | None:
    """The keys that are asked for: none, the store's, or a file's and the store's."""
    from ranklog.access.api_keys import StoreKeys
    from ranklog.access.grant import KeyRings

    if named is None:
        return None
    return KeyRings(*([] if from_file is None else [from_file]), StoreKeys(store))


def _stop(number: int, frame: object) -> NoReturn:
    raise SystemExit(0)
