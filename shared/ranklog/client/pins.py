"""Pinned questions: the query, its bounds and what was stored then, so that it can be asked again.

A pin names the indexes that were there and, per stream, the lines they have. Late data is in other
indexes and is not looked at. Where an index went (compaction), its lines are taken from others; lines
that nobody has any more are named.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ranklog.answer.render import completeness_json, render_time
from ranklog.client.catalog import LINES, LINES_AND_POINTS, Launch
from ranklog.client.read_back import read_completeness
from ranklog.client.reader import Reader
from ranklog.client.scope import Scope, judge_unheard_in, load_scope, skips_of
from ranklog.client.spiked import joins_points
from ranklog.client.words import check_query
from ranklog.errors import AlreadyExists, BadInput, Corrupt, NewerVersion, NotFound
from ranklog.layout import keys
from ranklog.model import query as q
from ranklog.model.answer import Completeness
from ranklog.model.index import StreamEntry
from ranklog.plan.expr_json import expr_from_json, expr_to_json
from ranklog.plan.overlap import Ranges, difference, union
from ranklog.plan.render import render_expr

_VERSION = 1
_ID = re.compile(r"pin-[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class Pin:
    """`indexes`: keys; `streams`: seq ranges by stream_id; `segments`: [key, length, hash, index]."""

    id: str
    created_ns: int
    query: q.Query
    groups: bool
    launches: tuple[tuple[str, str], ...] | None
    from_ns: int | None
    to_ns: int | None
    defaulted: bool
    indexes: tuple[str, ...]
    streams: dict[str, Ranges]
    segments: tuple[tuple[str, int, str, str], ...]
    completeness: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """What an answer says of its pin."""
        return {
            "id": self.id,
            "query": render_expr(self.query.expr),
            "limit": self.query.limit,
            "order": self.query.order,
            "created_ns": self.created_ns,
            "created": render_time(self.created_ns),
        }


def is_pin(text: str) -> bool:
    """Whether a word is the name of a pin."""
    return _ID.fullmatch(text) is not None


def refuse_words(query: str, given: Mapping[str, Any]) -> None:
    """A pin is a whole question. Raises BadInput."""
    check_query(query)
    if query.strip() or any(value is not None for key, value in given.items() if key != "tz"):
        raise BadInput("a pin has its own query and bounds", hint="leave out yours")


def save_pin(
    reader: Reader, query: q.Query, scope: Scope, completeness: Completeness, *, groups: bool
) -> Pin:
    """Keep what this query looked at. The same again is the same pin."""
    if query.cursor is not None:
        raise BadInput("only a first page can be pinned", hint="leave out the cursor")
    if completeness.skipped_tasks:
        raise BadInput("not all of it could be read, so it can't be pinned", hint="ask again")
    body = _body(query, scope, completeness, groups=groups)
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8)
    name = f"pin-{digest.hexdigest()}"
    try:
        data = json.dumps({**body, "created_ns": reader.now_ns()}, separators=(",", ":"))
        reader.store.put(keys.pin_key(reader.tenant, name), data.encode(), if_absent=True)
    except AlreadyExists:
        pass  # it was asked before, and nothing is new
    return load_pin(reader, name)


def _body(
    query: q.Query, scope: Scope, completeness: Completeness, *, groups: bool
) -> dict[str, Any]:
    read = (*scope.indexes.values(), *scope.points.values())
    heads = [(index.key, index.head.segment) for index in read]
    launches = scope.launches
    return {
        "version": _VERSION,
        "text": render_expr(query.expr),
        "expr": expr_to_json(query.expr),
        "limit": query.limit,
        "order": query.order,
        "context": query.context,
        "groups": groups,
        "launches": None if launches is None else [[one.run, one.launch] for one in launches],
        "bounds": [scope.listing.from_ns, scope.listing.to_ns, scope.listing.defaulted],
        "indexes": [key for key, _ in heads],
        "streams": _ranges(scope.entries()),
        "segments": [[s.key, s.length, s.hash, key] for key, s in heads if s is not None],
        "completeness": completeness_json(completeness),
    }


def _ranges(entries: Iterable[StreamEntry]) -> dict[str, Ranges]:
    """What some indexes have of each stream."""
    found: dict[str, Ranges] = {}
    for entry in entries:
        if entry.ranges:
            found.setdefault(entry.stream_id, []).extend(entry.ranges)
    return {name: union(ranges) for name, ranges in found.items()}


def load_pin(reader: Reader, name: str) -> Pin:
    """Raises BadInput, NotFound, NewerVersion, Corrupt."""
    if not is_pin(name):
        raise BadInput(f"{name!r} is no pin", hint="pin-… with 16 hexadecimal digits")
    try:
        data = reader.store.get(keys.pin_key(reader.tenant, name))
    except NotFound as error:
        raise NotFound(f"no pin {name}", hint="search --pin makes one") from error
    try:
        body = json.loads(data)
        if body["version"] > _VERSION:
            raise NewerVersion(f"{name} was written by a newer ranklog", hint="upgrade ranklog")
        return _pin(name, body)
    except (ValueError, KeyError, TypeError) as error:
        raise Corrupt(f"{name} is damaged: {error}") from error


def _pin(name: str, body: dict[str, Any]) -> Pin:
    launches = body["launches"]
    from_ns, to_ns, defaulted = body["bounds"]
    query = q.Query(
        expr_from_json(body["expr"]),
        limit=body["limit"],
        order=body["order"],
        context=body["context"],
    )
    return Pin(
        id=name,
        created_ns=body["created_ns"],
        query=query,
        groups=body["groups"],
        launches=None if launches is None else tuple((run, launch) for run, launch in launches),
        from_ns=from_ns,
        to_ns=to_ns,
        defaulted=defaulted,
        indexes=tuple(body["indexes"]),
        streams={s: [(a, b) for a, b in ranges] for s, ranges in body["streams"].items()},
        segments=tuple((key, size, digest, at) for key, size, digest, at in body["segments"]),
        completeness=body["completeness"],
    )


# --- asked again --------------------------------------------------------------------------------
def open_pinned(reader: Reader, pin: Pin) -> Scope:
    """The scope as it was. `failed` names what is gone."""
    launches = None if pin.launches is None else _launches(reader, pin.launches)
    kinds = LINES_AND_POINTS if joins_points(pin.query.expr) else LINES
    if launches is None:
        listing = reader.catalog.list_time(pin.from_ns, pin.to_ns, kinds)
    else:
        listing = reader.catalog.list_launches(launches, pin.from_ns, pin.to_ns, kinds)
    pinned = set(pin.indexes)
    there = pinned.intersection(listing.keys)
    whole = replace(listing, keys=sorted(there), defaulted=pin.defaulted)
    scope = load_scope(reader, launches, whole, pinned=True)
    if there == pinned:
        judge_unheard_in(reader, scope, kinds)
        return scope
    listing = replace(listing, defaulted=pin.defaulted)
    scope = load_scope(reader, launches, listing, pinned=True)
    return _without_others(scope, pin)


def _launches(reader: Reader, names: Iterable[tuple[str, str]]) -> list[Launch]:
    """All of them; one that is not there any more has no hours."""
    return [reader.catalog.launch(run, launch) for run, launch in names]


def _without_others(scope: Scope, pin: Pin) -> Scope:
    """Leave out lines that were not pinned; name pinned ones that nobody has."""
    skips = skips_of(scope, pin.streams)
    here = _ranges(scope.entries())
    failed = list(scope.failed)
    for stream_id, ranges in sorted(pin.streams.items()):
        gone = difference(ranges, here.get(stream_id, []))
        gone = difference(gone, scope.tombstones.streams.get(stream_id, ()))
        lines = sum(end - first for first, end in gone)
        if lines:
            reason = f"{lines} pinned lines are gone, the first is {gone[0][0]}"
            failed.append({"segment": f"stream {stream_id}", "reason": reason})
    judged = read_completeness(pin.completeness)
    judged.deleted = scope.judged.deleted
    return replace(scope, skips=skips, failed=failed, judged=judged)
