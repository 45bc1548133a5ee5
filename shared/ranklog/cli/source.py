"""Where a command reads and writes: the store or the API that options and environment name."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ranklog.cli.config import Config, read_config
from ranklog.errors import BadInput, NotFound

if TYPE_CHECKING:
    from ranklog.admin import Admin
    from ranklog.client import Client
    from ranklog.store.protocol import Store

DEFAULT_TENANT = "default"


@dataclass(frozen=True, slots=True)
class Source:
    """Exactly one of `store` and `api` is set. `implied`: nobody named a store, it is the local one.
    `configured`: `ranklog configure` named it."""

    store: str | None
    api: str | None
    tenant: str
    implied: bool = False
    configured: Config | None = None


def source_of(
    arguments: argparse.Namespace,
    environ: Mapping[str, str] = os.environ,
    *,
    asks_api: bool = True,
) -> Source:
    """Options before environment before configuration; in each, a store or an API but not both. Of the
    configured stack the API answers who has a key of it, for what can ask an API (`asks_api`); else the
    bucket, with the user's AWS credentials. Raises BadInput."""
    # a command that writes has no --api, one whose frames name their tenant no --tenant
    given_tenant: str | None = getattr(arguments, "tenant", None)
    tenant = DEFAULT_TENANT if given_tenant is None else given_tenant
    store, api = arguments.store, getattr(arguments, "api", None)
    names = "--store and --api"
    refuse_empty(arguments, "store", "api", "tenant")
    if not store and not api:
        store, api = environ.get("RANKLOG_STORE"), environ.get("RANKLOG_API")
        names = "$RANKLOG_STORE and $RANKLOG_API"
    if store and api:
        raise BadInput(f"{names} name two places", hint="say which: --store URL or --api URL")
    if api:
        if given_tenant is not None:
            raise BadInput("--tenant goes with --store", hint="an API knows its tenant by the key")
        return Source(None, api, tenant)
    if store:
        return Source(store, None, tenant)
    config = read_config(environ)
    if config is None:
        return Source(str(local_store(environ)), None, tenant, implied=True)
    asks = asks_api and hasattr(arguments, "api") and given_tenant is None
    if config.api and (not config.store or (asks and config.key)):
        return Source(None, config.api, tenant, configured=config)
    return Source(config.store, None, tenant, configured=config)


def refuse_empty(arguments: argparse.Namespace, *options: str) -> None:
    """What is given as "" or blanks, as by a shell's variable that nobody set, is not the usual one."""
    for option in options:
        given: str | None = getattr(arguments, option, None)
        if given is not None and not given.strip():
            raise BadInput(f"--{option} names nothing", hint=f"name one, or leave --{option} out")


def refuse_names(arguments: argparse.Namespace) -> None:
    """A run whose name other commands would read as a launch of another one, a run or launch whose name no
    key takes."""
    from ranklog.layout.keys import encode_name
    from ranklog.plan.bounds import parse_run_selector

    run: str | None = arguments.run
    if run and (name := parse_run_selector(run).name) != run:
        raise BadInput(
            f"a run can't be named {run[:80]}: elsewhere that means a launch of {name[:80]}",
            hint="leave @ and ~ out of the name; --launch ID names the launch",
        )
    for given in (run, arguments.launch):
        encode_name(given or "")


def at_source(command: str, arguments: argparse.Namespace) -> str:
    """A command that is shown, with the options of this one that say where lines are."""
    named = {name: getattr(arguments, name, None) for name in ("store", "api", "tenant")}
    options = [f"--{name} {shlex.quote(value)}" for name, value in named.items() if value]
    return " ".join([command, *options])


def local_store(environ: Mapping[str, str] = os.environ) -> Path:
    """The store in the user's data directory."""
    data = environ.get("XDG_DATA_HOME")
    base = Path(data) if data and Path(data).is_absolute() else Path.home() / ".local" / "share"
    return base / "ranklog"


def open_client(arguments: argparse.Namespace) -> Client:
    """A client to read with. Never makes a store. Raises BadInput, NotFound."""
    source = source_of(arguments)
    _make_ready(source)
    from ranklog.client import Client

    if source.api:
        return Client(api=source.api)
    return Client(store=source.store, tenant=source.tenant)


def open_admin_of(arguments: argparse.Namespace) -> Admin:
    """Who administers the store or, through its API, the key's tenant. Raises BadInput, NotFound."""
    source = source_of(arguments)
    _make_ready(source)
    from ranklog.admin import open_admin

    if source.api:
        return open_admin(api=source.api)
    return open_admin(store=source.store, tenant=source.tenant)


def open_store_of(arguments: argparse.Namespace, *, create: bool) -> tuple[Store, str]:
    """A store to write to or to serve, and the tenant. Raises BadInput for an API."""
    from ranklog.store.open import open_store

    source = source_of(arguments, asks_api=False)
    if source.store is None:
        raise BadInput("this command works on a store, not through an API", hint="give --store")
    _make_ready(source, create=create)
    return open_store(source.store, create=create), source.tenant


def _make_ready(source: Source, *, create: bool = False) -> None:
    """A store must be there, but for who makes one; what is configured is used."""
    if source.configured is not None:
        source.configured.use()
    if not create and source.implied and source.store and not Path(source.store).exists():
        raise NotFound(
            f"no local store yet at {source.store}",
            hint="`ranklog demo` or `ranklog import` makes one, or name yours: --store URL",
        )
