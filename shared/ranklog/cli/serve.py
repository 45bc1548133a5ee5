"""`ranklog serve`: ranklog on this machine - the HTTP API over a store, ingest, compaction."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from ranklog.cli.console import Console
from ranklog.cli.source import local_store, open_store_of
from ranklog.errors import BadInput
from ranklog.server.roles import API, COMPACT, INGEST, default_stream, parse_roles

if TYPE_CHECKING:
    from http.server import ThreadingHTTPServer

    from ranklog.access.grant import KeyRing
    from ranklog.api.keys import Keys
    from ranklog.api.serve import Handler
    from ranklog.server.processes import Job, Stopping
    from ranklog.store.protocol import Store

# In place of a file: keys are the store's alone.
STORE_KEYS = "store"
COMPACT_EVERY_S_MIN = 10.0
WINDOW_S_MAX = 300.0


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Serve until interrupted or told to stop."""
    plan = _plan(arguments)
    server = _bind(arguments, plan) if API in plan.roles else None
    _say(console, plan, server)
    console.close()
    signal.signal(signal.SIGTERM, _stop)
    jobs = _jobs(plan, server)
    try:
        if server is not None and len(jobs) == 1:
            server.serve_forever()
        else:
            from ranklog.server.processes import keep_running

            keep_running(jobs)
    finally:
        if server is not None:
            server.server_close()
    return 0


@dataclass(frozen=True, slots=True)
class _Plan:
    """What was asked for, checked. `stream` None: frames that the API takes are stored at once."""

    arguments: argparse.Namespace
    roles: frozenset[str]
    workers: int
    store: Store
    stream: Path | None


def _plan(arguments: argparse.Namespace) -> _Plan:
    """Raises BadInput before anything is made or bound."""
    from ranklog.api.workers import WORKERS_MAX, workers_default
    from ranklog.store.probe import check_create_once

    roles = parse_roles(arguments.roles)
    if roles != {API} and not hasattr(os, "fork"):
        raise BadInput("roles beside api need processes that this system can't fork")
    workers = arguments.workers or workers_default()
    if workers > WORKERS_MAX:
        raise BadInput(f"--workers {workers}, limit {WORKERS_MAX}", hint="one per core is enough")
    if arguments.window > WINDOW_S_MAX:
        raise BadInput(f"--window {arguments.window}", hint=f"at most {WINDOW_S_MAX:.0f} seconds")
    if arguments.compact_every < COMPACT_EVERY_S_MIN:
        raise BadInput(
            f"--compact-every {arguments.compact_every}", hint=f"at least {COMPACT_EVERY_S_MIN:.0f}"
        )
    if arguments.stream and not roles & {API, INGEST}:
        raise BadInput("--stream goes with the roles api and ingest")
    store, _ = open_store_of(arguments, create=True)
    if store.url.startswith("s3://"):
        check_create_once(store)
    stream = Path(arguments.stream).absolute() if arguments.stream else None
    if stream is None and INGEST in roles:
        stream = default_stream(local_store(), store.url)
    return _Plan(arguments, roles, workers, store, stream)


def _bind(arguments: argparse.Namespace, plan: _Plan) -> ThreadingHTTPServer:
    from ranklog.api.local import make_handler
    from ranklog.api.serve import Tls, make_server, parse_listen
    from ranklog.api.workers import built_when_asked

    host, port = parse_listen(arguments.listen)
    from_file = _file_keys(arguments.keys)
    if bool(arguments.tls_cert) != bool(arguments.tls_key):
        raise BadInput("a certificate and its key go together", hint="--tls-cert and --tls-key")
    tls = Tls(Path(arguments.tls_cert), Path(arguments.tls_key)) if arguments.tls_cert else None

    def build() -> Handler:
        ours, tenant = open_store_of(arguments, create=False)
        ring = _ring(arguments.keys, from_file, ours)
        return make_handler(ours, keys=ring, tenant=tenant, stream=plan.stream)

    has_keys = arguments.keys is not None
    return make_server(built_when_asked(build), host=host, port=port, tls=tls, has_keys=has_keys)


def _jobs(plan: _Plan, server: ThreadingHTTPServer | None) -> list[Job]:
    """One per process."""
    jobs: list[Job] = []
    if server is not None:
        from ranklog.api.workers import answer_requests

        jobs += [partial(answer_requests, server, plan.workers)] * plan.workers
    if INGEST in plan.roles:
        jobs.append(partial(_ingest, plan))
    if COMPACT in plan.roles:
        jobs.append(partial(_compact, plan))
    return jobs


def _ingest(plan: _Plan, stopping: Stopping) -> None:
    from ranklog.server.ingesting import ingest_until

    assert plan.stream is not None
    store, _ = open_store_of(plan.arguments, create=False)  # a client survives no fork
    ingest_until(stopping, plan.stream, store, window_s=plan.arguments.window, tell=_tell)


def _compact(plan: _Plan, stopping: Stopping) -> None:
    from ranklog.server.tending import tend_until

    store, _ = open_store_of(plan.arguments, create=False)
    tend_until(stopping, store, every_s=plan.arguments.compact_every, tell=_tell)


def _say(console: Console, plan: _Plan, server: ThreadingHTTPServer | None) -> None:
    said: dict[str, object] = {"store": plan.store.url, "roles": sorted(plan.roles)}
    if server is not None:
        said["url"] = _url(server, bool(plan.arguments.tls_cert))
    if plan.stream is not None:
        said["stream"] = str(plan.stream)
    if console.json:
        console.object(said)
        return
    at = f" at {said['url']}" if server is not None else ""
    by = "" if plan.roles == {API} else f" as {', '.join(sorted(plan.roles))}"
    console.line(f"serving {plan.store.url}{at}{by} (Ctrl-C stops)")
    if plan.stream is not None:
        console.line(f"frames wait in {plan.stream}")


def _url(server: ThreadingHTTPServer, has_tls: bool) -> str:
    host, port = server.server_address[:2]
    shown = f"[{host!s}]" if ":" in str(host) else str(host)
    return f"{'https' if has_tls else 'http'}://{shown}:{port}"


def _tell(text: str) -> None:
    """A line for the journal of whoever runs the server."""
    print(text, file=sys.stderr, flush=True)


def _file_keys(named: str | None) -> Keys | None:
    """Read before anything is served, so that a bad file is an error of the command."""
    from ranklog.api.keys import Keys

    return None if named in (None, STORE_KEYS) else Keys.read(named)


def _ring(named: str | None, from_file: Keys | None, store: Store) -> KeyRing | None:
    """The keys that are asked for: none, the store's, or a file's and the store's."""
    from ranklog.access.api_keys import StoreKeys
    from ranklog.access.grant import KeyRings
    from ranklog.store.prompt import Prompt

    if named is None:
        return None
    return KeyRings(*([] if from_file is None else [from_file]), StoreKeys(Prompt(store)))


def _stop(number: int, frame: object) -> NoReturn:
    raise SystemExit(0)
