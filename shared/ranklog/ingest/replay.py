"""Store what is in quarantine and can be read by now: after a key was added, or an update.

A frame keeps its time of arrival and is stored under its source and sequence number, so that a replay
that died half-way, or came twice, stores nothing twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ranklog.errors import BadInput, Corrupt, Forbidden, NewerVersion, TooLarge
from ranklog.ingest.batch import ingest_frames
from ranklog.ingest.quarantine import REASONS, Entry, mark_replayed
from ranklog.ingest.records import read_record
from ranklog.model.record import Record
from ranklog.store.protocol import Store

if TYPE_CHECKING:
    from ranklog.access.seals import Seals
    from ranklog.ingest.batch import Rules

REPLAYED, ALREADY, REFUSED = "replayed", "already", "refused"


@dataclass(frozen=True, slots=True)
class Replay:
    """What became of one entry: `code` and `reason` say why it is still refused."""

    entry: Entry
    state: str
    lines: int = 0
    points: int = 0
    code: str = ""
    reason: str = ""


def replay_entry(
    store: Store, entry: Entry, *, seals: Seals | None, rules: Rules, now_ns: int
) -> Replay:
    """Store an entry's frame, or say why it still can't be. Raises what the store raises."""
    if entry.replayed_ns is not None:
        return Replay(entry, ALREADY)
    record = Record(store.get(entry.key), entry.arrival_ns, entry.sequence)
    try:
        received = read_record(record, seals)
    except (Corrupt, NewerVersion, BadInput, TooLarge, Forbidden) as error:
        return Replay(entry, REFUSED, code=REASONS.get(error.kind, "refused"), reason=error.message)
    report = ingest_frames(
        [received],
        store=store,
        rules=rules,
        source=f"quarantine-{entry.source}",
        first=entry.sequence,
        last=entry.sequence,
    )
    mark_replayed(store, entry, now_ns)
    return Replay(entry, REPLAYED, report.lines, report.points)
