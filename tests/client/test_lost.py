"""Launches of which every index was lost: questions that name no run say so, and never answer complete."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ranklog.client import Client
from ranklog.client.deletion import delete, find_deletion
from ranklog.client.reader import local_reader
from ranklog.client.words import read_query
from ranklog.compact.compacting import Compactor
from ranklog.compact.reindex import reindex
from ranklog.limits import COMPACT_GRACE_S, SECOND_NS
from ranklog.model.answer import Completeness
from ranklog.model.frame import FrameStream
from ranklog.model.stream import Stream
from ranklog.store.memory import MemoryStore
from tests.client.test_search import HOUR, ended, put
from tests.ingest.frames import STREAM, T0, Row

OTHER = replace(STREAM, run="mamba", rank=0, local_rank=0, world_size=None)
LLAMA = replace(STREAM, rank=0, local_rank=0, world_size=None)
BOUNDS: dict[str, Any] = {"since": "2026-03-01T00:00:00Z", "until": "2026-03-01T01:00:00Z"}


def put_run(store: MemoryStore, one: Stream, name: str, ts: int = T0) -> None:
    notes: list[FrameStream] = [ended(one, 4)]
    put(store, name, [Row(f"{one.run} {i}", ts + i, one) for i in range(4)], streams=notes)


@pytest.fixture
def store() -> MemoryStore:
    made = MemoryStore()
    put_run(made, LLAMA, "1")
    put_run(made, OTHER, "2")
    return made


def client(store: MemoryStore) -> Client:
    return Client(store=store, tenant="acme")


def lose(store: MemoryStore, run: str, *, segments: bool = False) -> None:
    """Delete every index of a run, and its segments."""
    from ranklog.layout.index import SegmentIndex

    for item in list(store.list("acme/index/")):
        head = SegmentIndex.open(store.get(item.key), item.key).head
        if any(entry.stream.run == run for entry in head.streams):
            store.delete(item.key)
            if segments and head.segment is not None:
                store.delete(head.segment.key)


def lost(completeness: Completeness) -> list[str]:
    return [item["segment"] for item in completeness.skipped_tasks]


ASKED: dict[str, Callable[[Client], Any]] = {
    "search": lambda c: c.search(""),
    "search with bounds": lambda c: c.search("", **BOUNDS),
    "search since": lambda c: c.search("", since=BOUNDS["since"]),
    "count": lambda c: c.count("", **BOUNDS),
    "patterns": lambda c: c.patterns(""),
    "callsites": lambda c: c.callsites(""),
    "runs": lambda c: c.runs(),
    "streams": lambda c: c.streams(),
    "series": lambda c: c.series("loss"),
    "sql": lambda c: c.sql("SELECT count(*) FROM lines"),
}


@pytest.mark.parametrize("kind", ASKED)
def test_a_launch_whose_indexes_are_gone_is_named(kind: str, store: MemoryStore) -> None:
    assert lost(ASKED[kind](client(store)).completeness) == []
    lose(store, "llama")
    told = ASKED[kind](client(store)).completeness
    assert (told.state, lost(told)) == ("partial", ["acme/runs/llama/17/hours/"])


@pytest.mark.parametrize("kind", ASKED)
def test_where_no_index_is_left_every_launch_is_named(kind: str, store: MemoryStore) -> None:
    for run in ("llama", "mamba"):
        lose(store, run, segments=run == "llama")
    told = ASKED[kind](client(store)).completeness
    assert told.state == "partial"
    assert lost(told)[-1] == "acme/runs/mamba/17/hours/"


def test_markers_alone_suffice_where_there_is_nothing_else(store: MemoryStore) -> None:
    for run in ("llama", "mamba"):
        lose(store, run, segments=True)
    for kind in ("search", "search with bounds", "runs", "streams"):
        assert len(lost(ASKED[kind](client(store)).completeness)) == 2, kind


def test_a_list_of_runs_misses_a_launch_of_which_only_markers_are_left(store: MemoryStore) -> None:
    lose(store, "llama", segments=True)
    assert lost(client(store).runs().completeness) == ["acme/runs/llama/17/hours/"]
    named = client(store).runs(run="llama")
    assert (named.rows, named.completeness.state) == ([], "partial")
    assert client(store).runs(run="mamba").completeness.state == "complete"


def test_hours_after_those_of_the_newest_index_are_missed_by_default(store: MemoryStore) -> None:
    late = replace(LLAMA, launch="18")
    put_run(store, late, "3", T0 + 30 * HOUR)
    assert client(store).search("").completeness.state == "complete"
    for item in list(store.list("acme/index/2026-03-02/")):
        store.delete(item.key)
    told = client(store).search("").completeness
    assert lost(told) == ["acme/runs/llama/18/hours/"]
    assert client(store).search("", **BOUNDS).completeness.state == "complete"


def test_after_reindex_nothing_is_lost(store: MemoryStore) -> None:
    lose(store, "llama")
    reindex(store, "acme")
    assert lost(client(store).search("", **BOUNDS).completeness) == []


def test_compaction_before_its_cleanup_and_after_leaves_nothing_lost(store: MemoryStore) -> None:
    for seq in range(3):  # late, in bundles, merged
        put_run(store, replace(OTHER, run=f"r{seq}"), f"{seq + 5}", T0 + seq)
    seen = {item.key: item.modified_ns or 0 for item in store.list("acme/")}
    now = max(seen.values())
    for age_s in (300, 86_400, 86_400 + COMPACT_GRACE_S + 1):
        Compactor(store, "acme", now + age_s * SECOND_NS).run()
        for kind in ("search", "search with bounds", "runs"):
            assert lost(ASKED[kind](client(store)).completeness) == [], (age_s, kind)


def test_a_segment_that_is_left_over_names_no_launch_that_is_there(store: MemoryStore) -> None:
    put_run(store, LLAMA, "1 again")
    [again] = [item.key for item in store.list("acme/index/") if "again" in item.key]
    store.delete(again)
    assert client(store).search("", **BOUNDS).completeness.state == "complete"


def test_what_was_deleted_is_not_lost(store: MemoryStore) -> None:
    reader = local_reader(store, "acme")
    query = read_query("", {"run": "llama"}, now_ns=T0)
    delete(reader, find_deletion(reader, query, who="t"))
    lose(store, "llama")
    for kind in ("search", "search with bounds", "runs"):
        assert lost(ASKED[kind](client(store)).completeness) == [], kind


def test_a_pin_of_a_launch_of_which_nothing_was_read_is_not_complete_when_asked_again(
    store: MemoryStore,
) -> None:
    from ranklog.layout.keys import hour_marker_key

    store.put(hour_marker_key("acme", "llama", "99", T0 // HOUR), b"")
    pinned = client(store).search("", run="llama@99", pin=True)
    assert pinned.completeness.state == "behind" and pinned.pin is not None
    assert client(store).search("", pin=pinned.pin["id"]).completeness.state == "behind"
    store.delete(hour_marker_key("acme", "llama", "99", T0 // HOUR))
    assert client(store).search("", pin=pinned.pin["id"]).completeness.state == "behind"


def test_a_listing_of_streams_says_that_nothing_of_its_launch_was_read(store: MemoryStore) -> None:
    from ranklog.layout.keys import hour_marker_key

    store.put(hour_marker_key("acme", "llama", "99", T0 // HOUR), b"")
    assert client(store).streams("llama@99").completeness.state == "behind"
    assert client(store).streams("llama@99", rank=0).completeness.state == "behind"
