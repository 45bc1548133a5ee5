"""What can't be stored as it is: kept with its reason, and stored when the reason is gone.

    <tenant>/quarantine/<arrival day>/<source>.<sequence>                 the record's bytes
    <tenant>/quarantine/<arrival day>/<source>.<sequence>.json            why, when, how large
    <tenant>/quarantine/<arrival day>/<source>.<sequence>.replayed.json   that it is stored now

It is kept for QUARANTINE_KEPT_DAYS, and for REPLAYED_KEPT_DAYS where it was stored: `expire` removes it.

The tenant is the one that the frame claims, `_unknown` where it claims none. A record that comes again
is set aside again under the same key; a shard never waits for it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ranklog.errors import BadInput, Corrupt, NewerVersion, NotFound, RanklogError
from ranklog.layout import keys
from ranklog.limits import DAY_NS, QUARANTINE_KEPT_DAYS, REPLAYED_KEPT_DAYS
from ranklog.model.record import Record
from ranklog.store.protocol import Store
from ranklog.stream.frames import peek_header

NOTE, REPLAYED = ".json", ".replayed.json"
# kind of the error -> reason, a word that programs may rely on
FAILED = "failed"  # ingest itself broke on it
REASONS = {
    "corrupt": "malformed",
    "newer_version": "unknown_version",
    "too_large": "oversized",
    "bad_input": "refused",
    "unsigned": "unsigned",
    "forged": "forged",
}


@dataclass(frozen=True, slots=True)
class BadFrame:
    """A frame that was set aside: the word and the sentence of its reason, where it lies now."""

    sequence: str
    reason: str
    key: str
    code: str = "malformed"

    @property
    def tenant(self) -> str | None:
        """Whose quarantine it is in; None: nobody's."""
        part = self.key.partition("/")[0]
        return None if part == keys.UNKNOWN_TENANT else keys.decode_name(part)


@dataclass(frozen=True, slots=True)
class Entry:
    """A record in quarantine. `entry_id` is `<day>/<source>.<sequence>`; times in ns."""

    key: str
    entry_id: str
    length: int
    code: str
    reason: str
    arrival_ns: int
    source: str
    sequence: str
    replayed_ns: int | None

    def to_json(self) -> dict[str, Any]:
        """For people and programs."""
        return {
            "id": self.entry_id,
            "reason": self.code,
            "detail": self.reason,
            "arrival_ns": self.arrival_ns,
            "bytes": self.length,
            "source": self.source,
            "sequence": self.sequence,
            "replayed_ns": self.replayed_ns,
        }


def set_aside(store: Store, record: Record, error: RanklogError, source: str) -> BadFrame:
    """Keep a record that can't be stored, with its reason."""
    return keep(store, record, REASONS.get(error.kind, "refused"), error.message, source)


def keep(store: Store, record: Record, code: str, detail: str, source: str) -> BadFrame:
    """Keep a record with a reason; the record first, so that no reason is without one."""
    arrival_ns = max(record.arrival_ns, 0)
    day = keys.day_text(arrival_ns)
    key = keys.quarantine_key(claimed_tenant(record.data), day, source, record.sequence)
    store.put(key, record.data)  # the same bytes again on a retry
    note = {
        "version": 1,
        "reason": code,
        "detail": detail,
        "arrival_ns": arrival_ns,
        "source": source,
        "sequence": record.sequence,
    }
    store.put(key + NOTE, json.dumps(note, ensure_ascii=True).encode())
    return BadFrame(record.sequence, detail, key, code)


def claimed_tenant(data: bytes) -> str | None:
    """The tenant that a frame names, where its header can be read and the name fits a key."""
    try:
        tenant = peek_header(data).header.tenant
        keys.tenant_prefix(tenant)
        return tenant
    except (Corrupt, NewerVersion, BadInput):
        return None


def list_entries(store: Store, tenant: str | None) -> Iterator[Entry]:
    """What is in a tenant's quarantine, or (None) in nobody's; in order of arrival day and source."""
    prefix = keys.quarantine_prefix(tenant)
    found = {info.key: info.length for info in store.list(prefix)}
    for key, length in found.items():
        if not key.endswith(NOTE):
            yield _entry(store, prefix, key, length, found)


def find_entry(store: Store, tenant: str | None, entry_id: str) -> Entry:
    """The record of that id. Raises NotFound."""
    prefix = keys.quarantine_prefix(tenant)
    parts = entry_id.split("/")
    if len(parts) == 2 and all(part not in ("", ".", "..") for part in parts):
        key = prefix + entry_id
        found = {info.key: info.length for info in store.list(key)}
        if key in found and not key.endswith(NOTE):
            return _entry(store, prefix, key, found[key], found)
    raise NotFound(f"nothing in quarantine is {entry_id[:80]!r}", hint="ranklog quarantine list")


def expire(store: Store, tenant: str | None, now_ns: int) -> dict[str, int]:
    """Remove what was kept long enough; how many frames by reason (`replayed`: stored since). The frame
    goes before its reason, so that what is left of a removal that was cut short is removed by the next.

    Raises what the store raises; again, it goes on.
    """
    prefix = keys.quarantine_prefix(tenant)
    found = {info.key: info.length for info in store.list(prefix)}
    gone: Counter[str] = Counter()
    for key in [key for key in found if not key.endswith(NOTE)]:
        entry = _entry(store, prefix, key, found[key], found)
        is_stored = entry.replayed_ns is not None
        since_ns = entry.arrival_ns if entry.replayed_ns is None else entry.replayed_ns
        days = REPLAYED_KEPT_DAYS if is_stored else QUARANTINE_KEPT_DAYS
        if now_ns - since_ns >= days * DAY_NS:
            gone["replayed" if is_stored else entry.code] += 1
            store.delete(key)
            _forget_notes(store, key, found)
    for note in found:
        frame = note.removesuffix(REPLAYED).removesuffix(NOTE)
        if note.endswith(NOTE) and frame not in found:
            store.delete(note)
    return dict(gone)


def _forget_notes(store: Store, key: str, found: dict[str, int]) -> None:
    for note in (key + REPLAYED, key + NOTE):
        if note in found:
            store.delete(note)


def mark_replayed(store: Store, entry: Entry, now_ns: int) -> None:
    """Say that it is stored."""
    store.put(entry.key + REPLAYED, json.dumps({"version": 1, "replayed_ns": now_ns}).encode())


def _entry(store: Store, prefix: str, key: str, length: int, found: dict[str, int]) -> Entry:
    note = _read(store, key + NOTE) if key + NOTE in found else {}
    replayed = _read(store, key + REPLAYED) if key + REPLAYED in found else None
    day, _, name = key.removeprefix(prefix).partition("/")
    source, _, sequence = (keys.decode_name(part) for part in name.partition("."))
    return Entry(
        key,
        f"{day}/{name}",
        length,
        str(note.get("reason", "unknown")),
        str(note.get("detail", "its reason was not kept")),
        int(note.get("arrival_ns", keys.day_ns(day))),
        str(note.get("source", source)),
        str(note.get("sequence", sequence)),
        None if replayed is None else int(replayed.get("replayed_ns", 0)),
    )


def _read(store: Store, key: str) -> dict[str, Any]:
    try:
        said = json.loads(store.get(key))
    except (NotFound, ValueError):
        return {}
    return said if isinstance(said, dict) else {}
