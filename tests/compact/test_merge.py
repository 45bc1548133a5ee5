"""What compaction makes answers every question as what it replaced."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranklog.client import Client
from ranklog.layout.bundle import open_indexes
from tests.compact.stores import (
    GRACE_NS,
    SteppedStore,
    Stopped,
    answered,
    compact,
    expected,
    ingest_one,
)
from tests.corpus_lines import BOUNDS, TENANT, TERMS, Corpus, random_corpus, random_query
from tests.ingest.frames import T0


def filled(corpus: Corpus, *, twice: bool = False) -> SteppedStore:
    store = SteppedStore()
    for number in range(len(corpus.batches)):
        for copy in range(1 + twice):
            ingest_one(store, corpus, number, copy)
    return store


def values(store: SteppedStore) -> list[object]:
    """Every line whole, as a reader has it."""
    client = Client(store=store, tenant=TENANT)
    answer = client.search("*", limit=None, order="oldest", groups=False, **BOUNDS)  # type: ignore[arg-type]
    bare = [
        replace(line, tid=0, metadata=dict(sorted(line.metadata.items()))) for line in answer.lines
    ]
    return sorted(map(repr, bare))


@pytest.mark.parametrize("twice", [False, True])
def test_every_term_means_the_same_before_and_after(twice: bool) -> None:
    corpus = random_corpus(7, batches=6, rows=40)
    store = filled(corpus, twice=twice)
    before = values(store)
    report = compact(store)
    assert report.failed == {} and report.merges > 0
    assert values(store) == before
    for term in TERMS:
        for query in (term, f"NOT {term}"):
            assert answered(store, query) == expected(corpus, query), query


def test_a_second_pass_finds_nothing_to_do() -> None:
    store = filled(random_corpus(3, batches=5))
    compact(store)
    names = store.names("")
    report = compact(store)
    assert (report.merges, report.bundles, report.deleted) == (0, 0, 0)
    assert store.names("") == names


def test_what_was_replaced_goes_after_the_grace_and_nothing_else() -> None:
    corpus = random_corpus(5, batches=6)
    store = filled(corpus)
    compact(store)
    kept = store.names("index/")
    assert compact(store).deleted == 0
    store.clock_ns += GRACE_NS
    assert compact(store).deleted > 0
    left = store.names("index/")
    assert set(left) < set(kept) and all(".~1." in key for key in left)
    named = {
        index.head.segment.key
        for key in left
        for index in open_indexes(store.get(key), key)
        if index.head.segment is not None
    }
    assert set(store.names("data/")) == named
    assert answered(store, "*") == expected(corpus, "*")


@settings(max_examples=16, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32))
def test_any_sequence_of_steps_and_crashes_answers_as_the_oracle(seed: int) -> None:
    rng = random.Random(seed)
    corpus = random_corpus(seed, batches=6, rows=12)
    store, done = SteppedStore(), set[int]()
    waiting = list(range(6))
    for _ in range(14):
        kind = rng.choice(["ingest", "ingest", "again", "compact", "crash", "wait"])
        if kind == "ingest" and waiting:
            number = waiting.pop(rng.randrange(len(waiting)))
            ingest_one(store, corpus, number)
            done.add(number)
        elif kind == "again" and done:
            ingest_one(store, corpus, rng.choice(sorted(done)), rng.randrange(2))
        elif kind == "compact":
            compact(store)
        elif kind == "crash":
            crash(store, rng)
        else:
            store.clock_ns += rng.choice([60_000_000_000, GRACE_NS])
        query = random_query(rng)
        assert answered(store, query) == expected(corpus, query, done), (kind, query)
        assert answered(store, "*") == expected(corpus, "*", done), kind
        low = T0 + rng.randrange(4 * 3_600) * 10**9  # names bound what a LIST finds
        span = (low, low + rng.choice([1, 60, 3_600]) * 10**9)
        assert answered(store, "*", span) == expected(corpus, "*", done, span), (kind, span)


def crash(store: SteppedStore, rng: random.Random) -> None:
    store.steps, store.stop_at, store.after = 0, rng.randrange(12), rng.random() < 0.5
    with suppress(Stopped):
        compact(store)
    store.stop_at = None
    store.clock_ns += rng.choice([0, 3_600_000_000_000])


@pytest.mark.parametrize("after", [False, True])
def test_a_crash_at_each_step_leaves_every_answer_and_the_next_pass_ends_the_work(
    after: bool,
) -> None:
    corpus = random_corpus(9, batches=4, rows=15)
    wanted = expected(corpus, "*")
    steps = 0
    while True:
        store = filled(corpus)
        for _ in range(2):  # merge; then, after the grace, delete
            store.steps, store.stop_at, store.after = 0, steps, after
            try:
                compact(store)
                stopped = False
            except Stopped:
                stopped = True
            store.stop_at = None
            assert answered(store, "*") == wanted, steps
            store.clock_ns += GRACE_NS
            compact(store)
            assert answered(store, "*") == wanted, steps
        store.clock_ns += GRACE_NS
        compact(store)
        assert all(".~1." in key for key in store.names("index/"))
        if not stopped and steps > 30:
            break
        steps += 1
