"""What is older than a tenant keeps is not stored: late frames below the floor of retention.

It depends on the rules that hold when a batch is tried. A retried batch may so refuse more than the first
attempt did, never less: what it would have stored beside that is stored all the same, as rows only leave
parts.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ranklog.delete.retention import Policy, load_policy
from ranklog.errors import Corrupt, NewerVersion
from ranklog.layout.build import StreamNotes
from ranklog.layout.rows import I64, StreamRows
from ranklog.model.frame import Drop
from ranklog.store.protocol import Store

REASON = "retention"


def read_policy(store: Store, tenant: str) -> Policy:
    """The tenant's rules. Rules that can't be read refuse nothing: a shard must not wait for them."""
    try:
        return load_policy(store, tenant)
    except (Corrupt, NewerVersion):
        return Policy()


def above_floor(
    rows: StreamRows, order: I64, notes: dict[int, StreamNotes], policy: Policy, arrival_ns: int
) -> I64:
    """Of the rows `order` those that are kept; `notes` say of each stream how many are not."""
    if not policy.rules or not len(order):
        return order
    floors = np.array(
        [policy.floor_ns(stream.run, arrival_ns) for stream in rows.streams], np.int64
    )
    below = rows.ts[order] < floors[rows.stream[order]]
    if not below.any():
        return order
    places, counts = np.unique(rows.stream[order[below]], return_counts=True)
    for place, lines in zip(places.tolist(), counts.tolist(), strict=True):
        note = notes.get(place, StreamNotes())
        notes[place] = replace(note, drops=(*note.drops, Drop(lines, REASON)))
    kept: I64 = order[~below]
    return kept
