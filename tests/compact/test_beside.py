"""Compactors beside one another, beside readers, beside a tail: nobody sees a line twice or never."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from ranklog.client import Client
from ranklog.client.catalog import Catalog
from ranklog.client.indexes import IndexCache
from ranklog.compact.compacting import Compactor, CompactReport
from ranklog.compact.contents import Folder, folders
from ranklog.compact.lease import lease
from ranklog.errors import Unavailable
from ranklog.limits import COMPACT_LEASE_S, HOUR_NS, SECOND_NS
from tests.client.test_tail import Job, shown
from tests.compact.stores import (
    GRACE_NS,
    SteppedStore,
    answered,
    compact,
    expected,
    ingest_one,
)
from tests.corpus_lines import BOUNDS, TENANT, random_corpus
from tests.ingest.frames import T0, stream


class Interleaved(SteppedStore):
    """Calls `meanwhile` at one PUT or DELETE, before it is done: somebody else works there."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[], None] | None = None
        self.at = 0

    def _step(self, *, done: bool) -> None:
        super()._step(done=done)
        if not done and self.meanwhile is not None:
            self.at -= 1
            if self.at < 0:
                other, self.meanwhile = self.meanwhile, None
                other()


@pytest.mark.parametrize("seed", range(12))
def test_another_compactor_at_any_step_and_a_reader_after_each(seed: int) -> None:
    rng = random.Random(seed)
    corpus = random_corpus(seed, batches=5, rows=12)
    store = Interleaved()
    for number in range(4):
        ingest_one(store, corpus, number)
    wanted = expected(corpus, "*", {0, 1, 2, 3})

    def without_lease() -> None:
        compactor = Compactor(store, TENANT, store.clock_ns)
        for folder in list(folders(store, TENANT)):
            compactor.merge(folder, CompactReport())
            compactor.bundle(folder, CompactReport())
        assert answered(store, "*") == wanted

    for _ in range(4):
        store.meanwhile, store.at = without_lease, rng.randrange(10)
        compact(store)
        store.meanwhile = None
        assert answered(store, "*") == wanted
        store.clock_ns += rng.choice([SECOND_NS, GRACE_NS])
    ingest_one(store, corpus, 4)
    for _ in range(3):
        compact(store)
        store.clock_ns += GRACE_NS
    assert answered(store, "*") == expected(corpus, "*")
    assert all(".~1." in key for key in store.names("index/"))


def test_a_lease_keeps_a_second_compactor_away_until_it_is_old() -> None:
    store = SteppedStore()
    folder = Folder(TENANT, T0 // HOUR_NS)
    with lease(store, folder, T0, "a") as first:
        with lease(store, folder, T0 + 1, "b") as second:
            assert (first, second) == (True, False)
        with lease(store, folder, T0 + (COMPACT_LEASE_S + 1) * SECOND_NS, "b") as third:
            assert third
    with lease(store, folder, T0, "b") as again:
        assert again


def test_a_lease_that_could_not_be_given_back_keeps_only_others_away() -> None:
    class Deaf(SteppedStore):
        def delete(self, key: str) -> None:
            raise Unavailable(f"no answer: {key}")

    store, folder = Deaf(), Folder(TENANT, T0 // HOUR_NS)
    for at, owner, may in [(0, "a", True), (1, "b", False), (2, "a", True)]:
        with lease(store, folder, T0 + at, owner) as taken:
            assert taken is may
    for key in store.names("compaction/"):
        store.put(key, b'{"until_ns": 9999999999999999999}')  # of a version that named no owner
    with lease(store, folder, T0, "a") as taken:
        assert not taken


def test_a_question_that_was_listed_before_reads_what_it_listed_within_the_grace() -> None:
    corpus = random_corpus(2, batches=4, rows=15)
    store = SteppedStore()
    for number in range(4):
        ingest_one(store, corpus, number)
    cache = IndexCache(store)
    listed = Catalog(store, TENANT, cache).list_time(None, None).keys
    compact(store)
    store.clock_ns += GRACE_NS // 2
    compact(store)
    loaded = cache.load(listed)
    assert loaded.failed == []
    assert all(store.get(one.head.segment.key) for one in loaded.indexes if one.head.segment)


def test_a_copy_of_an_index_that_comes_back_after_its_segment_went_is_ignored() -> None:
    corpus = random_corpus(2, batches=4, rows=15)
    store = SteppedStore()
    for number in range(3):
        ingest_one(store, corpus, number)
    old = {key: store.get(key) for key in store.names("index/")}
    for _ in range(2):
        compact(store)
        store.clock_ns += GRACE_NS
    ingest_one(store, corpus, 3)
    for _ in range(3):
        compact(store)
        store.clock_ns += GRACE_NS
    for key, data in old.items():
        store.put(key, data)  # a compactor of level 0 that was stopped for hours
    assert answered(store, "*") == expected(corpus, "*")
    compact(store)
    assert answered(store, "*") == expected(corpus, "*")


@pytest.mark.parametrize("terms", [{}, {"by": ["call_site", "level"]}])
def test_what_indexes_answer_alone_counts_each_line_once(terms: dict[str, list[str]]) -> None:
    corpus = random_corpus(6, batches=4, rows=20)
    store = SteppedStore()
    for number in range(4):
        ingest_one(store, corpus, number)

    def told() -> object:
        client = Client(store=store, tenant=TENANT)
        sites = client.callsites(run="llama")
        counted = client.count("*", **terms, **BOUNDS)  # type: ignore[arg-type]
        # of an empty text and one that has no template, whichever comes first names both
        rows = [(r["call_site"], r["template"] or "", r["level"], r["count"]) for r in sites.rows]
        return sorted(map(repr, rows)), counted.rows, counted.count

    before = told()
    compact(store)
    for number in range(2):
        ingest_one(store, corpus, number, copy=1)  # overlaps what was merged
    assert told() == before
    store.clock_ns += GRACE_NS
    compact(store)
    assert told() == before


def test_a_tail_shows_each_line_once_across_compactions() -> None:
    store = SteppedStore()
    job = Job(store)
    tail = job.tail()
    assert shown(tail.poll()) == []
    seen: list[object] = []
    for number in range(80):
        store.clock_ns = job.now_ns
        job.say(3 * number, 3 * number + 3)
        job.say(2 * number, 2 * number + 2, one=stream(7))
        job.wait(70)
        if number % 3 == 0:
            store.clock_ns = job.now_ns
            compact(store)
        seen += shown(tail.poll())
        job.wait(6)
        seen += shown(tail.poll())
    lines = sorted(map(str, seen))
    assert lines == sorted([*map(str, range(240)), *map(str, range(160))])


def test_a_pass_reads_each_index_once() -> None:
    corpus = random_corpus(3, batches=6, rows=20)
    store = SteppedStore()
    for number in range(6):
        ingest_one(store, corpus, number)
    read: list[str] = []
    get = store.get

    def counting(key: str) -> bytes:
        read.append(key)
        return get(key)

    store.get = counting  # type: ignore[method-assign]
    assert compact(store).merges > 0
    indexes = [key for key in read if "/index/" in key]
    assert len(indexes) == len(set(indexes)) > 6
