"""A tail between two requests: its state, kept in the store under a name that nobody can guess.

The next request may come to another process. One that comes again gets the same lines again: a state
is not changed, each answer that moved on has a new one, and the one before the last is removed.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgpack
import zstandard

from ranklog import limits
from ranklog.client.arrivals import Seen
from ranklog.client.cursor import query_hash
from ranklog.client.follow import Arrived, Followed, Following
from ranklog.client.reader import Reader
from ranklog.client.tail import POLL_S, Tail, TailState
from ranklog.client.tail_items import TailPage
from ranklog.errors import BadInput, NotFound
from ranklog.layout import keys
from ranklog.model import query as q
from ranklog.spmd.watch.news import news_of

_VERSION = 1
_BYTES_MAX = 64 * limits.MIB
_NAME_CHARACTERS = 32


def tail_page(
    reader: Reader,
    query: q.Query,
    cursor: str | None,
    *,
    wait_s: float,
    rows: int = limits.TAIL_PAGE_ROWS_MAX,
    streams: bool = False,
    sleep: Callable[[float], object] = time.sleep,
) -> TailPage:
    """One answer of a tail; without a cursor it begins now and answers at once. Waits for something
    to show for `wait_s`. `streams`: with what is new of streams. Raises BadInput for a cursor that is none, or of another query."""
    if cursor is None:
        begun = _save(reader, query, Tail(reader, query).state, "")
        return TailPage([], begun, [] if streams else None)
    state, query, before = _load(reader, query, cursor)
    tail = Tail(reader, query, state)
    looked_ns = state.seen.looked_ns or reader.now_ns()
    ends = time.monotonic() + min(wait_s, limits.TAIL_WAIT_S_MAX)
    while not (items := tail.poll(rows)) and time.monotonic() < ends:
        if streams and tail.heard:
            break
        sleep(POLL_S)
    news = None
    if streams:
        news = [news_of(entry) for entry in (*tail.heard, *tail.notes(looked_ns))]
    if not state.changed:
        return TailPage(items, cursor, news)
    following = _save(reader, query, state, cursor)
    if before:
        reader.store.delete(keys.tmp_key(reader.tenant, f"tail-{before}"))
    return TailPage(items, following, news)


def _save(reader: Reader, query: q.Query, state: TailState, before: str) -> str:
    name = secrets.token_hex(_NAME_CHARACTERS // 2)
    data = encode_state(state, query, before)
    reader.store.put(keys.tmp_key(reader.tenant, f"tail-{name}"), data)
    return name


def _load(reader: Reader, query: q.Query, cursor: str) -> tuple[TailState, q.Query, str]:
    """The state, the query with the bounds of its beginning, and the cursor before."""
    hexadecimal = set(cursor) <= set("0123456789abcdef")
    if len(cursor) != _NAME_CHARACTERS or not hexadecimal:
        raise BadInput("the cursor is damaged", hint="start without it")
    try:
        data = reader.store.get(keys.tmp_key(reader.tenant, f"tail-{cursor}"))
    except NotFound as error:
        raise BadInput("the cursor is too old", hint="start without it") from error
    return decode_state(data, query)


# --- bytes --------------------------------------------------------------------------------------
def encode_state(state: TailState, query: q.Query, before: str) -> bytes:
    """zstd of a msgpack map with a version."""
    value = {
        "version": _VERSION,
        "query": _identity(query),
        "bounds": [query.since_ns, query.until_ns],
        "before": before,
        "run_ids": state.run_ids,
        "run": state.run,
        "seen": [[*place, b"".join(sorted(n))] for place, n in state.seen.places.items()],
        "waiting": [[key, *value] for key, value in state.seen.waiting.items()],
        "times": [state.seen.swept_ns, state.seen.looked_ns],
        "streams": [_stream(name, one) for name, one in state.following.streams.items()],
        "holding": list(state.following.holding),
        "forgotten": state.following.forgotten,
        "tries": state.tries,
    }
    return zstandard.ZstdCompressor(level=3).compress(msgpack.packb(value))


def decode_state(data: bytes, query: q.Query) -> tuple[TailState, q.Query, str]:
    """Inverse of encode_state. Raises BadInput where it is of another query or version."""
    packed = zstandard.ZstdDecompressor().decompress(data, max_output_size=_BYTES_MAX)
    value = msgpack.unpackb(packed, strict_map_key=False)
    if value["version"] != _VERSION or value["query"] != _identity(query):
        raise BadInput("the cursor is of another query", hint="repeat its query, or start")
    state = TailState(
        run_ids=None if value["run_ids"] is None else tuple(value["run_ids"]),
        run=value["run"],
        seen=Seen(
            places={(kind, hour): _cut8(names) for kind, hour, names in value["seen"]},
            waiting={key: (times, at) for key, times, at in value["waiting"]},
            swept_ns=value["times"][0],
            looked_ns=value["times"][1],
        ),
        tries=value["tries"],
    )
    state.following = Following()
    state.following.streams = dict(_followed(item) for item in value["streams"])
    state.following.holding = dict.fromkeys(value["holding"])
    state.following.forgotten = value["forgotten"]
    since_ns, until_ns = value["bounds"]
    return state, replace(query, since_ns=since_ns, until_ns=until_ns), value["before"]


def _identity(query: q.Query) -> str:
    return f"{query_hash(query.expr)} {query.run}"


def _cut8(names: bytes) -> set[bytes]:
    return {names[at : at + 8] for at in range(0, len(names), 8)}


def _stream(name: str, one: Followed) -> list[Any]:
    held = [[part.first, part.end, part.index, part.at_ns, part.late] for part in one.held]
    return [name, one.run_id, one.rank, one.dense, one.floor, one.shown, held]


def _followed(item: list[Any]) -> tuple[str, Followed]:
    name, run_id, rank, dense, floor, shown, held = item
    ranges = [(first, end) for first, end in shown]
    return name, Followed(run_id, rank, dense, floor, ranges, [Arrived(*part) for part in held])
