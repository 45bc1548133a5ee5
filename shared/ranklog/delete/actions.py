"""What administrators did to a tenant: an append-only log, an object per action, written before it is done.

So nothing is done that the log does not name; an action that failed half way stands there as well.
"""

from __future__ import annotations

import contextlib
import getpass
import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ranklog.answer.render import render_time
from ranklog.errors import AlreadyExists, Corrupt, NewerVersion
from ranklog.layout import keys
from ranklog.store.protocol import Store

VERSION = 1


@dataclass(frozen=True, slots=True)
class Action:
    """`action`: a word such as delete or retention.set; `details` are JSON values."""

    action: str
    when_ns: int
    who: str
    why: str = ""
    details: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "when_ns": self.when_ns,
            "time": render_time(self.when_ns),
            "action": self.action,
            "who": self.who,
            "why": self.why,
            "details": self.details,
        }


def record_action(store: Store, tenant: str, action: Action) -> str:
    """Append to the log; the entry's key. Nothing is ever overwritten."""
    body = {
        "version": VERSION,
        "action": action.action,
        "when_ns": action.when_ns,
        "who": action.who,
        "why": action.why,
        "details": action.details,
    }
    data = json.dumps(body, sort_keys=True, separators=(",", ":")).encode()
    key = keys.action_key(tenant, action.when_ns, keys.hash_segment(data))
    with contextlib.suppress(AlreadyExists):
        store.put(key, data, if_absent=True)
    return key


def read_actions(store: Store, tenant: str) -> Iterator[Action]:
    """The log, oldest first. Raises Corrupt where an entry is not what was written."""
    for item in store.list(keys.actions_prefix(tenant)):
        data = store.get(item.key)
        if item.key.split(".")[-2] != keys.hash_segment(data):
            raise Corrupt(
                f"{item.key} was changed: its bytes are not those of its name",
                hint="the log is append-only; ask who can write to the bucket",
            )
        yield _action(data, item.key)


def _action(data: bytes, key: str) -> Action:
    try:
        body = json.loads(data)
        if body["version"] > VERSION:
            raise NewerVersion(f"{key} was written by a newer ranklog", hint="upgrade ranklog")
        return Action(
            str(body["action"]), int(body["when_ns"]), body["who"], body["why"], body["details"]
        )
    except (ValueError, KeyError, TypeError) as error:
        raise Corrupt(f"{key} is damaged: {error}") from error


def this_user() -> str:
    """Who runs this process, as far as the machine knows."""
    try:
        name = getpass.getuser()
    except (OSError, KeyError):  # a container without a name for its uid
        name = "unknown"
    return f"{name}@{socket.gethostname()}"
