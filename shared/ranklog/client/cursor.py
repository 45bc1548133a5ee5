"""Where the next page begins: opaque text that pins the scope, the order and the last line."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ranklog.client.resume import NAME_BYTES, Position, Progress
from ranklog.errors import BadInput
from ranklog.model import query as q
from ranklog.plan.expr_json import expr_to_json

_VERSION = 2


@dataclass(frozen=True, slots=True)
class Cursor:
    """`progress`: what was shown, in its order. `query`: hash of the terms."""

    query: str
    newest: bool
    progress: Progress
    from_ns: int | None
    to_ns: int | None
    defaulted: bool
    launches: tuple[tuple[str, str], ...] | None

    def render(self) -> str:
        body = [
            _VERSION,
            self.query,
            self.newest,
            self.progress.after,
            self.from_ns,
            self.to_ns,
            self.defaulted,
            self.launches,
            self.progress.done,
            _by_place(self.progress.late),
        ]
        text = json.dumps(body, separators=(",", ":"))
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def query_hash(expr: q.Expr) -> str:
    """Tells whether a cursor belongs to a query. Relative times are bounds and no part of it."""
    text = json.dumps(expr_to_json(expr), sort_keys=True)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def parse_cursor(text: str, expr: q.Expr, *, newest: bool) -> Cursor:
    """Inverse of render. Raises BadInput for what is none, or is of another query."""
    try:
        padded = text + "=" * (-len(text) % 4)
        version, query, was_newest, after, from_ns, to_ns, defaulted, launches, done, late = (
            json.loads(base64.urlsafe_b64decode(padded))
        )
        cursor = Cursor(
            query=str(query),
            newest=bool(was_newest),
            progress=Progress(_place(after), bool(done), _by_name(late)),
            from_ns=None if from_ns is None else int(from_ns),
            to_ns=None if to_ns is None else int(to_ns),
            defaulted=bool(defaulted),
            launches=None if launches is None else tuple((str(r), str(n)) for r, n in launches),
        )
    except (ValueError, TypeError, IndexError, binascii.Error) as error:
        raise BadInput("the cursor is damaged", hint="start without it") from error
    if version != _VERSION:
        raise BadInput(f"the cursor is of version {version}", hint="start without it")
    if cursor.query != query_hash(expr) or cursor.newest != newest:
        raise BadInput("the cursor is of another query or order", hint="repeat its query, or start")
    return cursor


def _by_place(late: Mapping[str, Position | None]) -> list[list[Any]]:
    """Few places, each with the names of many segments."""
    places: dict[Position | None, list[str]] = {}
    for name, at in late.items():
        places.setdefault(at, []).append(name)
    return [[at, "".join(names)] for at, names in places.items()]


def _by_name(late: Any) -> dict[str, Position | None]:
    width = 2 * NAME_BYTES
    return {
        names[at : at + width]: _place(place)
        for place, names in late
        for at in range(0, len(names), width)
    }


def _place(value: Any) -> Position | None:
    return None if value is None else (int(value[0]), str(value[1]), int(value[2]))
