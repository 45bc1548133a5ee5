"""Where the next page begins: opaque text that pins the scope, the order and the last line."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from dataclasses import dataclass

from ranklog.errors import BadInput
from ranklog.model import query as q
from ranklog.plan.expr_json import expr_to_json

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Cursor:
    """`after`: (ts, stream_id, seq) of the page's last line in its order. `query`: hash of the terms."""

    query: str
    newest: bool
    after: tuple[int, str, int]
    from_ns: int | None
    to_ns: int | None
    defaulted: bool
    launches: tuple[tuple[str, str], ...] | None

    def render(self) -> str:
        body = [
            _VERSION,
            self.query,
            self.newest,
            self.after,
            self.from_ns,
            self.to_ns,
            self.defaulted,
            self.launches,
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
        version, query, was_newest, after, from_ns, to_ns, defaulted, launches = json.loads(
            base64.urlsafe_b64decode(padded)
        )
        cursor = Cursor(
            query=str(query),
            newest=bool(was_newest),
            after=(int(after[0]), str(after[1]), int(after[2])),
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
