"""Frames that could not be stored, as objects: what they are, and what became of a replay.

Ingest, with numpy and Arrow, is imported where frames are looked into or stored: who only asks starts without.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ranklog.access.seals import Seals
from ranklog.admin.admin import Object
from ranklog.errors import RanklogError
from ranklog.ingest.quarantine import find_entry, list_entries
from ranklog.store.protocol import Store
from ranklog.stream.frames import peek_header

# What is shown of a record's beginning.
_HEAD_BYTES = 64


def entries(store: Store, tenant: str | None) -> list[Object]:
    """Of a tenant, None: of nobody; behind what can't be stored, what waits for the tenant's quota."""
    from ranklog.ingest.waiting import list_waiting

    waiting = () if tenant is None else list_waiting(store, tenant)
    return [
        *(one.to_json() for one in list_entries(store, tenant)),
        *(w.to_json() for w in waiting),
    ]


def entry(store: Store, tenant: str | None, entry_id: str) -> Object:
    """One record and its header, `frame` None where it has none that can be read. Raises NotFound."""
    found = find_entry(store, tenant, entry_id)
    data = store.get(found.key)
    said = found.to_json() | {"key": found.key, "begins": data[:_HEAD_BYTES].hex()}
    try:
        peeked = peek_header(data)
    except RanklogError as error:
        return said | {"frame": None, "header": error.message}
    header = peeked.header
    frame = {
        "tenant": header.tenant,
        "agent": header.agent,
        "number": header.number,
        "kind": header.kind,
        "rows": header.rows,
        "sealed": bool(peeked.mac),
        "runs": sorted({one.stream.run for one in header.streams}),
    }
    return said | {"frame": frame, "header": None}


def replay(
    store: Store, tenant: str | None, ids: Sequence[str], now_ns: int, most: int | None
) -> Object:
    """Store the named ones, or all that wait, at most so many. Raises NotFound before any is stored."""
    from ranklog.ingest.replay import ALREADY, REFUSED, REPLAYED, replay_entry
    from ranklog.ingest.tenant_rules import TenantRules

    waiting = [find_entry(store, tenant, one) for one in ids]
    if not ids:
        waiting = [one for one in list_entries(store, tenant) if one.replayed_ns is None]
    chosen = waiting[:most]
    seals, rules = Seals(store), TenantRules(store)
    done = [replay_entry(store, one, seals=seals, rules=rules, now_ns=now_ns) for one in chosen]
    states = Counter(one.state for one in done)
    told = [
        {
            "id": one.entry.entry_id,
            "state": one.state,
            "lines": one.lines,
            "points": one.points,
            "reason": one.code or None,
            "detail": one.reason or None,
        }
        for one in done
    ]
    counts = {state: states[state] for state in (REPLAYED, ALREADY, REFUSED)}
    return {"entries": told, "counts": counts, "left": len(waiting) - len(chosen)}
