"""Frames that wait in the store because their tenant is over its quota, and what becomes of them.

    <tenant>/waiting/<arrival day>/<arrival ns>.<source>.<sequence>      the record's bytes

The MAC of each was checked before. They are stored by time of arrival as soon as the tenant's hour has
room (`release`), under a name of their own and with their own time of arrival: twice, or after a death
half-way, nothing is stored twice, since a line is its stream and number. Only then do they go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ranklog.errors import BadInput, Corrupt, NewerVersion, TooLarge
from ranklog.ingest.quarantine import set_aside
from ranklog.ingest.records import Received, chosen_names, read_record
from ranklog.layout import keys
from ranklog.limits import LOCAL_BATCH_BYTES_MAX, WAITING_FRAMES_PER_BATCH
from ranklog.model.record import Record
from ranklog.store.protocol import Store

if TYPE_CHECKING:
    from ranklog.ingest.allowance import Allowance
    from ranklog.ingest.batch import Rules


@dataclass(frozen=True, slots=True)
class Waiting:
    """A frame that waits. `entry_id`: as `ranklog quarantine` names it."""

    key: str
    entry_id: str
    length: int
    arrival_ns: int
    source: str
    sequence: str

    def to_json(self) -> dict[str, Any]:
        """As an entry of quarantine, for people and programs."""
        return {
            "id": self.entry_id,
            "reason": "over_quota",
            "detail": "stored by itself when the tenant's quota has room",
            "arrival_ns": self.arrival_ns,
            "bytes": self.length,
            "source": self.source,
            "sequence": self.sequence,
            "replayed_ns": None,
        }


@dataclass(slots=True)
class Released:
    """What was stored, and how many wait still. `bad` could not be read after all: in quarantine."""

    frames: int = 0
    lines: int = 0
    points: int = 0
    bad: int = 0
    left: int = 0


def list_waiting(store: Store, tenant: str) -> Iterator[Waiting]:
    """In order of arrival."""
    prefix = keys.waiting_prefix(tenant)
    for info in store.list(prefix):
        entry_id = info.key.removeprefix(prefix)
        try:
            arrival, source, sequence = entry_id.partition("/")[2].split(".")
            named = keys.decode_name(source), keys.decode_name(sequence)
            yield Waiting(info.key, entry_id, info.length, int(arrival), *named)
        except ValueError:
            continue  # not ours: something else lies in the folder


def release(
    store: Store, tenant: str, *, allowance: Allowance | None, rules: Rules, batches: int = 16
) -> Released:
    """Store what waits, oldest first, as far as there is room (None: all), in at most so many batches.

    Raises what the store raises: what was stored is, again it goes on.
    """
    done = Released()
    waiting = list_waiting(store, tenant)
    for _ in range(batches):
        batch = _batch(waiting, tenant, allowance)
        if not batch:
            break
        store_waiting(store, batch, rules, done)
        if allowance is not None:
            allowance.settle()
    done.left = sum(1 for _ in list_waiting(store, tenant))
    return done


def store_waiting(store: Store, batch: Sequence[Waiting], rules: Rules, done: Released) -> None:
    """Store frames of one tenant, and let go of their copies."""
    from ranklog.ingest.batch import ingest_frames

    received: list[Received] = []
    for item in batch:
        record = Record(store.get(item.key), item.arrival_ns, item.sequence)
        try:
            received.append(read_record(record))
        except (Corrupt, NewerVersion, BadInput, TooLarge) as error:
            set_aside(store, record, error, item.source)
            done.bad += 1
    if received:
        names = chosen_names("waiting", [item.entry_id.partition("/")[2] for item in batch])
        report = ingest_frames(received, store=store, rules=rules, **names)
        done.frames += len(received)
        done.lines += report.lines
        done.points += report.points
    for item in batch:
        store.delete(item.key)


def _batch(waiting: Iterator[Waiting], tenant: str, allowance: Allowance | None) -> list[Waiting]:
    """The oldest frames for which there is room, as many as are stored together."""
    found: list[Waiting] = []
    held = 0
    if allowance is not None:
        allowance.begin()
    while held < LOCAL_BATCH_BYTES_MAX and len(found) < WAITING_FRAMES_PER_BATCH:
        if allowance is not None and not allowance.has_room(tenant):
            break
        item = next(waiting, None)
        if item is None:
            break
        if allowance is not None:
            allowance.ask(tenant, item.length)
        found.append(item)
        held += item.length
    return found
