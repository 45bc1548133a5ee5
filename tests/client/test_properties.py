"""A pruned answer equals a full scan and equals the oracle, over memory and over files."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranklog.client import Client
from ranklog.plan import segments
from ranklog.plan.parse import parse_query
from ranklog.scan import statement
from ranklog.store.disk import DiskStore
from ranklog.store.memory import MemoryStore
from tests.corpus_lines import BOUNDS, TENANT, TERMS, Corpus, random_corpus, random_query
from tests.duckdb_only import duckdb_only
from tests.ingest.frames import T0
from tests.oracle import matching


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return random_corpus(11, batches=4, rows=60)


@pytest.fixture(scope="module")
def clients(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> list[Client]:
    memory, disk = MemoryStore(), DiskStore(Path(tmp_path_factory.mktemp("store")))
    corpus.ingest(memory, twice=True)
    corpus.ingest(disk)
    return [Client(store=memory, tenant=TENANT), Client(store=disk, tenant=TENANT)]


def answered(client: Client, query: str, full_scan: bool = False) -> list[str]:
    with duckdb_only(full_scan):
        answer = client.search(
            query, limit=None, order="oldest", groups=False, full_scan=full_scan, **BOUNDS
        )
    assert answer.completeness.skipped_tasks == []
    return sorted(line.id for line in answer.lines)


def expected(corpus: Corpus, query: str) -> list[str]:
    parsed = parse_query(f"({query}) OR nothing-like-this", now_ns=T0)
    return sorted(matching(corpus.lines, parsed.expr))


def test_each_term_means_what_the_oracle_says(corpus: Corpus, clients: list[Client]) -> None:
    for term in TERMS:
        for query in (term, f"NOT {term}"):
            wanted = expected(corpus, query)
            shown = f"({query}) OR nothing-like-this"
            assert answered(clients[1], shown) == wanted, query
            assert answered(clients[1], shown, full_scan=True) == wanted, query


@settings(max_examples=40, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32))
def test_pruned_answers_equal_full_scans_and_the_oracle(
    corpus: Corpus, clients: list[Client], seed: int
) -> None:
    query = random_query(random.Random(seed))
    wanted = expected(corpus, query)
    shown = f"({query}) OR nothing-like-this"
    for client in clients:
        assert answered(client, shown) == wanted
        assert answered(client, shown, full_scan=True) == wanted
        count = client.count(shown, **BOUNDS)  # type: ignore[arg-type]
        assert count.count == len(wanted)


COUNTED = ["call_site", "function", "logger", "level", "template", "rank", "host", "iteration"]
# what the indexes can decide without a scan, where nothing else is asked
DECIDED = ["*", "level>=INFO", "NOT level:ERROR", "rank:0", "rank:0..2 level<ERROR", "rank:null"]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    by=st.lists(st.sampled_from(COUNTED), max_size=3, unique=True),
    terms=st.lists(st.sampled_from(DECIDED), min_size=1, max_size=2, unique=True),
    seed=st.none() | st.integers(0, 2**32),
)
def test_counts_of_indexes_equal_full_scans(
    clients: list[Client], by: list[str], terms: list[str], seed: int | None
) -> None:
    query = " ".join(f"({term})" for term in terms)
    if seed is not None:
        query += f" ({random_query(random.Random(seed))})"
    scanned = clients[1].count(query, by=by, full_scan=True, **BOUNDS)  # type: ignore[arg-type]
    for client in clients:
        assert client.count(query, by=by, **BOUNDS).rows == scanned.rows  # type: ignore[arg-type]


def test_answers_are_the_same_where_many_templates_are_left(
    corpus: Corpus, clients: list[Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statement, "_IN_LIST_MAX", 0)
    monkeypatch.setattr(segments, "_ROW_RANGES_MAX", 0)
    rng = random.Random(5)
    for _ in range(30):
        query = random_query(rng)
        wanted = expected(corpus, query)
        assert answered(clients[1], f"({query}) OR nothing-like-this") == wanted, query


@settings(max_examples=10, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32))
def test_any_corpus_answers_as_the_oracle(seed: int) -> None:
    corpus = random_corpus(seed, batches=2, rows=25)
    store = MemoryStore()
    corpus.ingest(store, twice=seed % 2 == 0)
    client = Client(store=store, tenant=TENANT)
    rng = random.Random(seed)
    for _ in range(6):
        query = random_query(rng)
        assert answered(client, f"({query}) OR nothing-like-this") == expected(corpus, query), query


@pytest.mark.parametrize("order", ["newest", "oldest"])
def test_pages_join_to_the_whole_answer_in_order(
    corpus: Corpus, clients: list[Client], order: str
) -> None:
    whole = clients[0].search("loss", limit=None, order=order, **BOUNDS)  # type: ignore[arg-type]
    for client in clients:
        paged, cursor = [], None
        while True:
            page = client.search("loss", limit=7, order=order, cursor=cursor, **BOUNDS)  # type: ignore[arg-type]
            paged += [line.id for line in page.lines]
            cursor = page.next
            assert page.truncated == (cursor is not None)
            if cursor is None:
                break
        assert paged == [line.id for line in whole.lines]


NEAR = [
    "near(loss, iteration, 1)",
    "near(loss, iteration, before 2, any)",
    "near(NCCL, iteration, after 1, host)",
    "near(level>=ERROR, time, 61s)",
    "near(level>=ERROR, time, before 1s, any)",
    "NOT near(loss, time, after 1s)",
]


@pytest.mark.parametrize("query", NEAR)
def test_near_equals_the_oracle_for_lines_with_rank_and_iteration(
    corpus: Corpus, clients: list[Client], query: str
) -> None:
    whole = "rank:* iteration:*"
    inner = query.replace("near(", f"near({whole} ")
    wanted = expected(corpus, f"{whole} {inner}")
    for client in clients:
        found = answered(client, f"({whole} {inner}) OR nothing-like-this")
        assert found == wanted


@pytest.mark.parametrize("query", [*NEAR, "near(rank:null, iteration, 1)", "near(loss, time, 0s)"])
def test_near_is_the_same_pruned_and_not_for_lines_without_rank_or_iteration(
    clients: list[Client], query: str
) -> None:
    shown = f"({query}) OR nothing-like-this"
    assert answered(clients[0], shown) == answered(clients[1], shown, full_scan=True)
    assert answered(clients[1], shown) == answered(clients[1], shown, full_scan=True)
