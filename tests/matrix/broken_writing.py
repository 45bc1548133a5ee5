"""Rules of ingest and agents, broken: each must show in a schedule."""

from __future__ import annotations

from dataclasses import replace
from hashlib import md5
from typing import Any

import numpy as np

from ranklog.access.seals import Seals, TenantSeals
from ranklog.agent import framer, sealing
from ranklog.agent.ledger import Ledger
from ranklog.agent.sending import Sender
from ranklog.agent.siblings import Siblings
from ranklog.agent.sinks import TAKEN, is_refused
from ranklog.compact import merge
from ranklog.errors import Unavailable
from ranklog.ingest import batch, commit, parts, quarantine, waiting
from ranklog.ingest.hours import split_hours
from ranklog.ingest.quarantine import BadFrame
from ranklog.layout import build, keys
from ranklog.model.index import SegmentRef
from ranklog.model.stream import Stream
from tests.matrix import faults as f
from tests.matrix.breaking import breaks, put_in_place
from tests.matrix.faults import Injection


@breaks("a segment's name ends in a hash of its bytes")
def segment_name_without_hash() -> None:
    name = commit.Place.segment_key
    put_in_place(commit.Place, segment_key=lambda place, _: name(place, "0" * 32))
    put_in_place(keys, segment_is_named=lambda *_: True)


@breaks("an index lists the ranges of the rows in its segment, never those of their frames")
def index_lists_frames_ranges() -> None:
    table = build.stream_table

    def of_batch(rows: Any, chosen: Any, notes: Any) -> Any:
        entries, places = table(rows, chosen, notes)
        listed = tuple(replace(entry, ranges=_all_of(rows, entry)) for entry in entries)
        return listed, places

    put_in_place(build, stream_table=of_batch)


def _all_of(rows: Any, entry: Any) -> tuple[tuple[int, int], ...]:
    """Of the stream in the whole batch; none where it has only notes."""
    seqs = np.unique(rows.seq[rows.stream == rows.stream_ids.index(entry.stream_id)])
    if not entry.ranges or not len(seqs):
        return tuple(entry.ranges)
    edges = np.flatnonzero(np.diff(seqs) > 1)
    starts, ends = [seqs[0], *seqs[edges + 1]], [*seqs[edges], seqs[-1]]
    return tuple((int(a), int(b) + 1) for a, b in zip(starts, ends, strict=True))


@breaks("an index lists every range of its rows, not only their bounds")
def index_lists_only_bounds() -> None:
    table = build.stream_table

    def bounds(rows: Any, chosen: Any, notes: Any) -> Any:
        entries, places = table(rows, chosen, notes)
        listed = tuple(
            replace(entry, ranges=((entry.ranges[0][0], entry.ranges[-1][1]),))
            if entry.ranges
            else entry
            for entry in entries
        )
        return listed, places

    put_in_place(build, stream_table=bounds)


def _index_first(module: Any) -> None:
    """What the module puts as segments waits for the index that names them."""
    waiting: dict[int, list[tuple[Any, ...]]] = {}
    put_segment, put_index = module.put_segment, module.put_index

    def later(store: Any, place: Any, segment: Any, *, again: bool = False) -> SegmentRef:
        waiting.setdefault(id(store), []).append((store, place, segment))
        etag = f'"{md5(segment.data).hexdigest()}"'
        return SegmentRef(place.segment_key(segment.hash), len(segment.data), segment.hash, etag)

    def first(store: Any, key: str, data: bytes) -> bool:
        done: bool = put_index(store, key, data)
        for put in waiting.pop(id(store), []):
            put_segment(*put)
        return done

    put_in_place(module, put_segment=later, put_index=first)


@breaks(
    "a batch's segment is there before its index",
    Injection(f.INGEST, "index.put", f.KILL_AFTER),
    seed=65,
)
def index_before_segment() -> None:
    _index_first(parts)


@breaks(
    "a merge's segments are there before the index that replaces others",
    Injection(f.COMPACTION, "index.put", f.KILL_AFTER),
)
def merged_index_before_segment() -> None:
    _index_first(merge)


@breaks(
    "a batch is acknowledged when all its indexes are committed",
    Injection(f.INGEST, "index.put", f.DOWN),
    seed=34,
)
def acknowledged_before_commit() -> None:
    put_index = commit.put_index

    def hopeful(store: Any, key: str, data: bytes) -> bool:
        try:
            return put_index(store, key, data)
        except Unavailable:
            return False

    put_in_place(parts, put_index=hopeful)


@breaks(
    "the PUT of an index is the commit, and it is put once: a stalled attempt changes nothing",
    Injection(f.INGEST, "index.put", f.STALL_BEFORE),
    seed=20,
)
def committed_index_put_again() -> None:
    put_in_place(parts, put_index=lambda store, key, data: bool(store.put(key, data)))


@breaks("a writer puts its segment again where over 5 minutes passed before its commit", seed=37)
def stale_segment_not_put_again() -> None:
    put_in_place(parts, is_stale=lambda _: False)


@breaks("the hour of a line is fixed before it is sent: a batch that comes again lands in the same")
def filed_by_the_batch() -> None:
    split = split_hours

    def shifted(rows: Any, order: Any, notes: Any) -> Any:
        return [
            part if part.hour is None else replace(part, hour=part.hour + len(order) % 2)
            for part in split(rows, order, notes)
        ]

    put_in_place(batch, split_hours=shifted)


@breaks("a frame that waits for its quota goes when it is stored", seed=63)
def waiting_frames_go_first() -> None:
    store_all = waiting.store_waiting

    def first(store: Any, batch: Any, *more: Any) -> None:
        held = {item.key: store.get(item.key) for item in batch}
        for key in held:
            store.delete(key)
        store_all(_Held(store, held), batch, *more)

    put_in_place(waiting, store_waiting=first)


class _Held:
    """A store beside objects that are in memory alone."""

    def __init__(self, store: Any, held: dict[str, bytes]) -> None:
        self._store, self._held = store, held

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def get(self, key: str) -> bytes:
        data: bytes = self._held[key] if key in self._held else self._store.get(key)
        return data


# --- agents ---------------------------------------------------------------------------------------
@breaks(
    "room in a ring is given back when the log has what was in it",
    Injection(f.AGENT, "ring.free", f.KILL_AFTER),
)
def checkpoint_before_log() -> None:
    def commit_(ledger: Any, change: Any, committed: Any, *, force: bool) -> None:
        frames, chains = ledger.framer.cut()
        if frames or force:
            committed(ledger.wal.end)
            ledger.wal.append(frames, {"chains": chains, **change})

    put_in_place(Ledger, commit=commit_)


@breaks(
    "a frame is sent when the other side has taken it", Injection(f.AGENT, "send", f.DOWN), seed=7
)
def marked_sent_before_taken() -> None:
    put = Sender._put

    def hopeful(sender: Any, frames: Any) -> Any:
        outcomes = put(sender, frames)
        return [one if one.error and is_refused(one.error) else TAKEN for one in outcomes]

    put_in_place(Sender, _put=hopeful)


@breaks("the MAC is computed when a frame is sent, not when it is spooled", seed=9)
def sealed_when_spooled() -> None:
    seal, known = sealing._seal, dict[bytes, bytes]()
    put_in_place(sealing, _seal=lambda data, secret: known.setdefault(data, seal(data, secret)))


@breaks("two incarnations of a log file are two streams", seed=9)
def incarnations_are_one_stream() -> None:
    def named(stream: Stream) -> str:
        parts = (
            stream.run,
            stream.launch,
            stream.attempt,
            stream.host,
            stream.rank,
            stream.channel,
        )
        return md5(repr(parts).encode()).hexdigest()

    put_in_place(Stream, stream_id=named)


@breaks("text is valid UTF-8: bytes that are not are kept beside it", seed=9)
def text_not_made_valid() -> None:
    put_in_place(framer, valid_text=lambda text: (text, None))


@breaks("a frame's tenant is proven by its MAC", seed=9)
def forged_frames_taken() -> None:
    put_in_place(Seals, check=lambda *_: None)


@breaks("a revoked key proves nothing, at once", seed=9)
def revoked_key_proves() -> None:
    put_in_place(TenantSeals, verifying=lambda seals, *_: [key.secret for key in seals.keys])


@breaks("what is set aside is kept before the batch is acknowledged", seed=9)
def bad_frames_not_kept() -> None:
    def named(_: Any, record: Any, code: str, detail: str, source: str) -> Any:
        key = keys.quarantine_key(None, keys.day_text(record.arrival_ns), source, record.sequence)
        return BadFrame(record.sequence, detail, key, code)

    put_in_place(quarantine, keep=named)


@breaks("a frame tells of its processes' other streams", seed=1)
def siblings_not_told() -> None:
    put_in_place(Siblings, tell=lambda *_: None)
