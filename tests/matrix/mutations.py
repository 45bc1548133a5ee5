"""Rules of the design broken on purpose, one at a time: schedules must show each of them.

A mutation changes this process, and is for a worker that does nothing else. Its rule is that of
`docs/architecture.md`, `docs/storage-format.md` or `docs/deletion.md`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import md5
from typing import Any

import numpy as np

from ranklog.agent.ledger import Ledger
from ranklog.agent.sending import Sender
from ranklog.agent.sinks import TAKEN, is_refused
from ranklog.answer import completeness
from ranklog.client import indexes, retention, scope
from ranklog.compact import cleanup, compacting, merge, orphans, streams
from ranklog.compact.pins import Pinned
from ranklog.errors import Unavailable
from ranklog.ingest import commit, parts
from ranklog.layout import build, keys
from ranklog.layout.keys import tombstones_prefix
from ranklog.model.index import SegmentRef
from ranklog.plan.overlap import Overlaps
from tests.matrix import faults as f
from tests.matrix.faults import Injection


@dataclass(frozen=True, slots=True)
class Mutation:
    """`rule`: what the design says; `apply` makes this process do otherwise. `at`: what happens in each
    schedule besides, where the rule is for one thing that is seldom drawn."""

    rule: str
    apply: Callable[[], None]
    at: Injection | None = None


MUTATIONS: dict[str, Mutation] = {}


def _breaks(
    rule: str, at: Injection | None = None
) -> Callable[[Callable[[], None]], Callable[[], None]]:
    def note(apply: Callable[[], None]) -> Callable[[], None]:
        MUTATIONS[apply.__name__.replace("_", "-")] = Mutation(rule, apply, at)
        return apply

    return note


def _set(owner: Any, **members: Any) -> None:
    for name, value in members.items():
        assert hasattr(owner, name), (owner, name)
        setattr(owner, name, value)


# --- writing ---------------------------------------------------------------------------------------
@_breaks("a segment's name ends in a hash of its bytes")
def segment_name_without_hash() -> None:
    name = commit.Place.segment_key
    _set(commit.Place, segment_key=lambda place, _: name(place, "0" * 32))
    _set(keys, segment_is_named=lambda *_: True)


@_breaks("an index lists the ranges of the rows in its segment, never those of their frames")
def index_lists_frames_ranges() -> None:
    table = build.stream_table

    def of_batch(rows: Any, chosen: Any, notes: Any) -> Any:
        entries, places = table(rows, chosen, notes)
        listed = tuple(replace(entry, ranges=_all_of(rows, entry)) for entry in entries)
        return listed, places

    _set(build, stream_table=of_batch)


def _all_of(rows: Any, entry: Any) -> tuple[tuple[int, int], ...]:
    """Of the stream in the whole batch; none where it has only notes."""
    seqs = np.unique(rows.seq[rows.stream == rows.stream_ids.index(entry.stream_id)])
    if not entry.ranges or not len(seqs):
        return tuple(entry.ranges)
    edges = np.flatnonzero(np.diff(seqs) > 1)
    starts, ends = [seqs[0], *seqs[edges + 1]], [*seqs[edges], seqs[-1]]
    return tuple((int(a), int(b) + 1) for a, b in zip(starts, ends, strict=True))


@_breaks("an index lists every range of its rows, not only their bounds")
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

    _set(build, stream_table=bounds)


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

    _set(module, put_segment=later, put_index=first)


@_breaks("a batch's segment is there before its index")
def index_before_segment() -> None:
    _index_first(parts)


@_breaks(
    "a merge's segments are there before the index that replaces others",
    Injection(f.COMPACTION, "index.put", f.KILL_AFTER),
)
def merged_index_before_segment() -> None:
    _index_first(merge)


@_breaks(
    "a batch is acknowledged when all its indexes are committed",
    Injection(f.INGEST, "index.put", f.DOWN),
)
def acknowledged_before_commit() -> None:
    put_index = commit.put_index

    def hopeful(store: Any, key: str, data: bytes) -> bool:
        try:
            return put_index(store, key, data)
        except Unavailable:
            return False

    _set(parts, put_index=hopeful)


@_breaks(
    "a writer puts its segment again where over 5 minutes passed before its commit",
    Injection(f.INGEST, "segment.put", f.STALL_AFTER),
)
def stale_segment_not_put_again() -> None:
    _set(parts, is_stale=lambda _: False)


@_breaks("a segment without an index is deleted after 7 days, not sooner")
def orphan_age_too_short() -> None:
    _set(orphans._is_old, __defaults__=(60,))


# --- agents ----------------------------------------------------------------------------------------
@_breaks(
    "room in a ring is given back when the log has what was in it",
    Injection(f.AGENT, "ring.free", f.KILL_AFTER),
)
def checkpoint_before_log() -> None:
    def commit_(ledger: Any, change: Any, committed: Any, *, force: bool) -> None:
        frames, chains = ledger.framer.cut()
        if frames or force:
            committed(ledger.wal.end)
            ledger.wal.append(frames, {"chains": chains, **change})

    _set(Ledger, commit=commit_)


@_breaks("a frame is sent when the other side has taken it", Injection(f.AGENT, "send", f.DOWN))
def marked_sent_before_taken() -> None:
    put = Sender._put

    def hopeful(sender: Any, frames: Any) -> Any:
        outcomes = put(sender, frames)
        return [one if one.error and is_refused(one.error) else TAKEN for one in outcomes]

    _set(Sender, _put=hopeful)


# --- compaction ------------------------------------------------------------------------------------
@_breaks("`replaces` is transitive", Injection(f.INGEST, "index.put", f.STALL_BEFORE))
def replaces_not_transitive() -> None:
    _set(merge, _replaces=lambda _, chosen: tuple(sorted(index.key for index in chosen)))


@_breaks(
    "a reader ignores what another index replaces",
    Injection(f.INGEST, "index.put", f.STALL_BEFORE),
)
def replaced_not_ignored() -> None:
    def held(found: Any) -> set[str]:
        return {one.key for item in found.values() if not isinstance(item, str) for one in item}

    _set(indexes, _drop_replaced=lambda _: None, _answered=held)


@_breaks("the name of what replaces covers the bounds of all that it replaces")
def no_union_of_bounds() -> None:
    def of_one(names: Any) -> tuple[int, int]:
        name = next(iter(names))
        return name.min_ts, name.max_ts

    _set(merge, _bounds=of_one)


@_breaks("what is replaced is deleted after twice the longest question's time")
def no_grace() -> None:
    _set(cleanup, COMPACT_GRACE_S=-1)


@_breaks("of two bundles that hold the same index one stays")
def both_copies_deleted() -> None:
    _set(cleanup, _rank=lambda held: held.key)
    may_go = cleanup._may_go

    def any_other(held: Any, gone: Any, homes: Any, now_ns: int) -> bool:
        return may_go(held, gone, homes, now_ns) or all(
            len(homes[index.key]) > 1 for index in held.indexes
        )

    _set(cleanup, _may_go=any_other)


@_breaks("what a pin names is never deleted")
def pins_not_kept() -> None:
    _set(compacting, read_pins=lambda *_: Pinned())
    _set(retention, _pinned=lambda *_: set())


@_breaks("of a line that is there twice a merge keeps one")
def merge_keeps_duplicates() -> None:
    def all_rows(rows: Any, hidden: Any) -> Any:
        order = np.lexsort((rows.seq, rows.stream))
        return order[~streams._is_hidden(rows, hidden)[order]]

    _set(merge, rows_that_count=all_rows)


@_breaks("what indexes say of streams (fences, ends) is in what replaces them")
def notes_lost_by_merge() -> None:
    _set(streams, merged_notes=lambda before, _: before)


# --- deletion --------------------------------------------------------------------------------------
@_breaks("every later compaction keeps the tombstones")
def tombstones_dropped_by_compaction() -> None:
    run = compacting.Compactor.run

    def forgetting(compactor: Any, hours: Any = None) -> Any:
        report = run(compactor, hours)
        if report.dropped:
            for info in list(compactor.store.list(tombstones_prefix(compactor.tenant))):
                compactor.store.delete(info.key)
        return report

    _set(compacting.Compactor, run=forgetting)


@_breaks("a tombstoned row is hidden whichever segment holds it")
def tombstones_not_read() -> None:
    _set(scope, hidden_rows=lambda *_: {})


# --- reading ---------------------------------------------------------------------------------------
@_breaks("overlap is found before the scan, and what is there twice is counted once")
def overlap_not_skipped() -> None:
    _set(scope, overlaps=lambda *_: Overlaps())


@_breaks("a hole in the seqs of a stream is a gap")
def gaps_not_seen() -> None:
    _set(completeness, _gaps=lambda *_: ([], False))


@_breaks("the watermark is before the first gap")
def watermark_beyond_gaps() -> None:
    _set(completeness, _watermark=lambda state, window, _: window.to_ns or state.last_ts)


@_breaks("without a fence or an end nobody knows that nothing follows")
def no_fence_needed() -> None:
    _set(completeness, _proven=lambda *_: True)


@_breaks("a rank that never appeared is named")
def absent_ranks_not_named() -> None:
    _set(completeness, absent_ranks=lambda *_, **__: [])
