"""`ranklog keys create|list|revoke|require`: who may ask the API, and what frames are sealed with."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from ranklog.cli.arguments import names_of
from ranklog.cli.console import Console
from ranklog.cli.source import open_store_of
from ranklog.cli.tables import print_table
from ranklog.cli.times import shown_time, zone_of
from ranklog.errors import BadInput
from ranklog.plan.times import parse_duration

if TYPE_CHECKING:
    from ranklog.access.records import KeyRecord
    from ranklog.store.protocol import Store

_HINT = "ranklog keys create, list, revoke ID or require on|off"


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Do one of them. Who reaches the store may: there is no key above it."""
    action, ids = arguments.action_words, arguments.id_words
    if action not in _ACTIONS:
        raise BadInput(f"no action {action!r}", hint=_HINT)
    if bool(ids) != (action in ("revoke", "require")):
        raise BadInput("which?" if not ids else f"{action} takes no {ids[0]!r}", hint=_HINT)
    store, tenant = open_store_of(arguments, create=action == "create")
    return _ACTIONS[action](arguments, console, store, tenant)


def _create(arguments: argparse.Namespace, console: Console, store: Store, tenant: str) -> int:
    from ranklog.access.manage import create_api_key, create_ingest_key

    now_ns, name = time.time_ns(), arguments.name or ""
    if arguments.ingest:
        if arguments.scope is not None or arguments.expires is not None:
            raise BadInput(
                "an ingest key has no scope and does not expire",
                hint="the next one rotates it, and `ranklog keys revoke ID` ends it at once",
            )
        key, record = create_ingest_key(store, tenant, now_ns=now_ns, name=name)
    else:
        key, record = create_api_key(
            store,
            tenant,
            names_of("read" if arguments.scope is None else arguments.scope),
            now_ns=now_ns,
            name=name,
            lifetime_ns=_lifetime_ns(arguments.expires),
        )
    details = {"id": record.key_id, "kind": record.kind, "scopes": record.to_json()["scopes"]}
    _note(store, tenant, "key.create", details)
    if console.json:
        console.object({"key": key, "tenant": tenant} | record.to_json())
        return 0
    console.line(key)
    where = "RANKLOG_INGEST_KEY" if arguments.ingest else "RANKLOG_API_KEY"
    console.note(
        f"key {record.key_id} of tenant {tenant}: it is shown this once, keep it as {where}"
    )
    return 0


def _lifetime_ns(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return parse_duration(text)
    except ValueError as error:
        raise BadInput(f"--expires: {error}", hint="for example 90d or 12h") from error


def _list(arguments: argparse.Namespace, console: Console, store: Store, tenant: str) -> int:
    from ranklog.access.manage import list_keys

    now_ns, records = time.time_ns(), list_keys(store, tenant)
    states = _states(records, now_ns)
    if console.json:
        for record in records:
            console.object(record.to_json() | {"state": states[record.key_id]})
    elif records:
        zone = zone_of(None)
        heads = ["id", "kind", "scopes", "state", "created", "expires", "name"]
        rows = [
            [
                record.key_id,
                record.kind,
                ",".join(record.to_json()["scopes"]) or None,
                states[record.key_id],
                shown_time(record.created_ns // 10**9 * 10**9, zone),
                shown_time(record.expires_ns and record.expires_ns // 10**9 * 10**9, zone),
                record.name or None,
            ]
            for record in records
        ]
        print_table(console, heads, rows)
    return 0 if records else 1


def _states(records: list[KeyRecord], now_ns: int) -> dict[str, str]:
    newest = max((r.created_ns for r in records if r.kind == "ingest"), default=0)
    states = {}
    for record in records:
        if record.revoked_ns is not None:
            states[record.key_id] = "revoked"
        elif record.expires_ns is not None and record.expires_ns <= now_ns:
            states[record.key_id] = "expired"
        elif record.kind == "ingest" and record.created_ns < newest:
            states[record.key_id] = "rotated"
        else:
            states[record.key_id] = "active"
    return states


def _revoke(arguments: argparse.Namespace, console: Console, store: Store, tenant: str) -> int:
    from ranklog.access.manage import forget_key, revoke_key

    for key_id in arguments.id_words:
        _note(store, tenant, "key.revoke", {"id": key_id, "forget": arguments.forget})
        record = revoke_key(store, tenant, key_id, now_ns=time.time_ns())
        if arguments.forget:
            forget_key(store, tenant, key_id)
        if console.json:
            console.object(record.to_json() | {"state": "revoked"})
        else:
            console.line(f"revoked the {record.kind} key {key_id}")
    return 0


def _require(arguments: argparse.Namespace, console: Console, store: Store, tenant: str) -> int:
    from dataclasses import replace

    from ranklog.access.manage import list_keys
    from ranklog.access.policy import read_policy, write_policy

    if arguments.id_words not in (["on"], ["off"]):
        raise BadInput(f"require {' '.join(arguments.id_words)!r}", hint="on or off")
    required = arguments.id_words == ["on"]
    active = [k for k in list_keys(store, tenant) if k.kind == "ingest" and k.revoked_ns is None]
    if required and not active:
        raise BadInput(
            f"tenant {tenant!r} has no ingest key: all its frames would go to quarantine",
            hint="ranklog keys create --ingest",
        )
    policy = replace(read_policy(store, tenant), signed_required=required)
    _note(store, tenant, "key.require", {"signed": required})
    write_policy(store, tenant, policy)
    if console.json:
        console.object(policy.to_json())
    else:
        need = "must be" if required else "need not be"
        console.line(f"frames of tenant {tenant} {need} sealed with an ingest key of its own")
    return 0


def _note(store: Store, tenant: str, action: str, details: dict[str, Any]) -> None:
    from ranklog.delete.actions import Action, record_action, this_user

    record_action(store, tenant, Action(action, time.time_ns(), this_user(), "", details))


_ACTIONS = {"create": _create, "list": _list, "revoke": _revoke, "require": _require}
