"""What is older than a tenant keeps is not stored: late frames below the floor of retention.

It depends on the rules that hold when a batch is tried. A retried batch may so refuse more than the first
attempt did, never less: what it would have stored beside that is stored all the same, as rows only leave
parts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ranklog.delete.retention import Policy, load_policy
from ranklog.errors import Corrupt, NewerVersion
from ranklog.ingest.records import Received
from ranklog.layout.build import StreamNotes
from ranklog.layout.rows import I64, StreamRows
from ranklog.limits import RULES_AGE_S_MAX
from ranklog.model.frame import Drop
from ranklog.store.protocol import Store

REASON = "retention"


class Policies:
    """tenant -> rules, read again when they are RULES_AGE_S_MAX old. For one thread. Rules that are damaged
    refuse nothing: a shard must not wait for them. Raises what the store raises."""

    def __init__(self, store: Store, *, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock_s = clock_s
        self._known: dict[str, tuple[float, Policy]] = {}

    def __call__(self, tenant: str) -> Policy:
        now_s = self._clock_s()
        # what is old goes, so that tenants that went don't stay in memory
        fresh = {n: item for n, item in self._known.items() if now_s - item[0] < RULES_AGE_S_MAX}
        if tenant not in fresh:
            fresh[tenant] = (now_s, self._read(tenant))
        self._known = fresh
        return fresh[tenant][1]

    def _read(self, tenant: str) -> Policy:
        try:
            return load_policy(self._store, tenant)
        except (Corrupt, NewerVersion):
            return Policy()


def above_floor(
    rows: StreamRows,
    order: I64,
    notes: dict[int, StreamNotes],
    policy: Policy,
    arrival_ns: int,
    frames: Sequence[Received],
) -> I64:
    """Of the rows `order` those that are kept; `notes` say of each stream how many of each frame are not.
    The rows are those of the frames, one frame after the other."""
    if not policy.rules or not len(order):
        return order
    floors = np.array(
        [policy.floor_ns(stream.run, arrival_ns) for stream in rows.streams], np.int64
    )
    below = rows.ts[order] < floors[rows.stream[order]]
    if not below.any():
        return order
    for place, drops in _refused(rows, order[below], frames).items():
        note = notes.get(place, StreamNotes())
        notes[place] = replace(note, drops=(*note.drops, *drops))
    kept: I64 = order[~below]
    return kept


def _refused(rows: StreamRows, refused: I64, frames: Sequence[Received]) -> dict[int, list[Drop]]:
    """How many of the rows each frame has, by stream."""
    ends = np.cumsum([item.frame.rows for item in frames])
    of = np.searchsorted(ends, refused, "right")
    pairs, counts = np.unique([rows.stream[refused], of], axis=1, return_counts=True)
    found: dict[int, list[Drop]] = {}
    for place, at, lines in zip(*pairs.tolist(), counts.tolist(), strict=True):
        frame = frames[at].frame
        drop = Drop(lines, REASON, (frame.agent, frame.number))
        found.setdefault(place, []).append(drop)
    return found
