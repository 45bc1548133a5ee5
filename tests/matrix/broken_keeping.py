"""Rules of compaction, deletion and retention, broken: each must show in a schedule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ranklog.client import indexes, retention, scope
from ranklog.compact import cleanup, compacting, merge, orphans, streams
from ranklog.compact.contents import Held
from ranklog.compact.pins import Pinned
from ranklog.delete import merging
from ranklog.delete.codec import decode_tombstone
from ranklog.delete.tombstones import put_tombstone
from ranklog.layout.drops import Drops
from ranklog.layout.keys import tombstones_prefix
from ranklog.limits import COMPACT_GRACE_S, SECOND_NS
from ranklog.model.tombstone import Tombstones
from tests.matrix import faults as f
from tests.matrix.breaking import breaks, put_in_place
from tests.matrix.faults import Injection


# --- compaction -----------------------------------------------------------------------------------
@breaks("a segment without an index is deleted after 7 days, not sooner", seed=6)
def orphan_age_too_short() -> None:
    is_old = orphans._is_old
    put_in_place(orphans, _is_old=lambda info, now_ns, age_s=60: is_old(info, now_ns, age_s))


@breaks("`replaces` is transitive", Injection(f.INGEST, "index.put", f.STALL_BEFORE), seed=85)
def replaces_not_transitive() -> None:
    put_in_place(merge, _replaces=lambda _, chosen: tuple(sorted(index.key for index in chosen)))


@breaks(
    "a reader ignores what another index replaces",
    Injection(f.INGEST, "index.put", f.STALL_BEFORE),
    seed=1,
)
def replaced_not_ignored() -> None:
    def held(found: Any) -> set[str]:
        return {one.key for item in found.values() if not isinstance(item, str) for one in item}

    put_in_place(indexes, _drop_replaced=lambda _: None, _answered=held)


@breaks("the name of what replaces covers the bounds of all that it replaces")
def no_union_of_bounds() -> None:
    def of_one(names: Any) -> tuple[int, int]:
        name = next(iter(names))
        return name.min_ts, name.max_ts

    put_in_place(merge, _bounds=of_one)


@breaks("what is replaced is deleted after twice the longest question's time")
def no_grace() -> None:
    put_in_place(Held, age_ns=lambda *_: (COMPACT_GRACE_S + 1) * SECOND_NS)


@breaks("of two bundles that hold the same index one stays")
def both_copies_deleted() -> None:
    put_in_place(cleanup, _rank=lambda held: held.key)
    may_go = cleanup._may_go

    def any_other(held: Any, gone: Any, homes: Any, now_ns: int) -> bool:
        return may_go(held, gone, homes, now_ns) or all(
            len(homes[index.key]) > 1 for index in held.indexes
        )

    put_in_place(cleanup, _may_go=any_other)


@breaks("what a pin names is never deleted")
def pins_not_kept() -> None:
    put_in_place(compacting, read_pins=lambda *_: Pinned())
    put_in_place(retention, _pinned=lambda *_: set())


@breaks("of a line that is there twice a merge keeps one", seed=1)
def merge_keeps_duplicates() -> None:
    def all_rows(rows: Any, hidden: Any, _: Any = None) -> Any:
        order = np.lexsort((rows.seq, rows.stream))
        return order[~streams._is_hidden(rows, hidden)[order]]

    put_in_place(merge, rows_that_count=all_rows)


@breaks("what indexes say of streams (fences, ends) is in what replaces them")
def notes_lost_by_merge() -> None:
    put_in_place(streams, merged_notes=lambda before, _: before)


@breaks("headers of frames are kept through compaction")
def headers_lost_by_merge() -> None:
    besides = merge._besides

    def without(*given: Any) -> Any:
        return [replace(beside, frames=()) for beside in besides(*given)]

    put_in_place(merge, _besides=without)


@breaks("what one frame says was dropped counts once", seed=18)
def drops_counted_by_index() -> None:
    def add(drops: Any, more: Any) -> None:
        for drop in more:
            key = (drop.frame, drop.reason)
            drops._lines[key] = drops._lines.get(key, 0) + drop.lines

    put_in_place(Drops, add=add)


# --- deletion -------------------------------------------------------------------------------------
@breaks("every later compaction keeps the tombstones")
def tombstones_dropped_by_compaction() -> None:
    run = compacting.Compactor.run

    def forgetting(compactor: Any, hours: Any = None) -> Any:
        report = run(compactor, hours)
        if report.dropped:
            for info in list(compactor.store.list(tombstones_prefix(compactor.tenant))):
                compactor.store.delete(info.key)
        return report

    put_in_place(compacting.Compactor, run=forgetting)


@breaks("a tombstoned row is hidden whichever segment holds it")
def tombstones_not_read() -> None:
    put_in_place(scope, hidden_rows=lambda *_: {})


@breaks("a launch that was deleted is hidden whole, whatever comes of it later", seed=8)
def deleted_launch_comes_back() -> None:
    put_in_place(
        Tombstones,
        hidden=lambda gone, entry: list(gone.streams.get(entry.stream_id, ())),
        hides_launch=lambda *_: False,
    )


@breaks(
    "tombstones that are merged go when the one that says the same is there",
    Injection(f.RETENTION, "tombstone.delete", f.KILL_AFTER),
    seed=2,
)
def tombstones_go_before_merged() -> None:
    put = put_tombstone

    def late(store: Any, tenant: str, tombstone: Any) -> str:
        for info in list(store.list(tombstones_prefix(tenant))):
            if info.key in merging_now:
                store.delete(info.key)
        return put(store, tenant, tombstone)

    merging_now: set[str] = set()
    decode = decode_tombstone

    def noted(data: bytes, key: str) -> Any:
        merging_now.add(key)
        return decode(data, key)

    put_in_place(merging, put_tombstone=late, decode_tombstone=noted)
