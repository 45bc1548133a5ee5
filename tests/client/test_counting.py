"""Counts over a small store: groups, the largest, buckets, numbers; from scans and from indexes alike."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranklog.client import Client
from ranklog.errors import BadInput, BadQuery
from ranklog.merge.numbers import ERROR
from ranklog.model.frame import NO_ITERATION, NO_LEVEL, CallSite
from ranklog.store.memory import MemoryStore
from tests.client.test_search import SECOND, put
from tests.ingest.frames import T0, Row, stream


def rows_of(seed: int) -> list[Row]:
    """A few hundred lines of two call sites and of none; most have a loss, as a float or an integer."""
    draw = random.Random(seed)
    rows = []
    for i in range(300):
        value = draw.choice([draw.uniform(-5, 50), draw.randrange(1, 9), None, math.nan, 0.0])
        rows.append(
            Row(
                f"step {i} says {draw.choice('abc')}",
                ts=T0 + i * SECOND // 3,
                stream=stream(draw.randrange(3)),
                iteration=i // 10 if i % 4 else NO_ITERATION,
                level=draw.choice([20, 30, NO_LEVEL]),
                site=draw.choice(
                    [CallSite("a.py:1", "f", "l"), CallSite("b.py:2", "g", "l"), None]
                ),
                metadata={} if value is None else {"loss": value},
            )
        )
    return rows


ROWS = rows_of(5)


@pytest.fixture(scope="module")
def clients() -> list[Client]:
    """The same lines in one segment and in many."""
    stores = [MemoryStore(), MemoryStore()]
    put(stores[0], "1", ROWS)
    for at in range(0, len(ROWS), 37):
        before = Counter(row.stream for row in ROWS[:at])
        put(stores[1], str(at + 1), ROWS[at : at + 37], first_seq=dict(before), number=at + 1)
    return [Client(store=store, tenant="acme") for store in stores]


def test_the_largest_groups_are_the_largest_of_all(clients: list[Client]) -> None:
    expected = Counter(row.site.site if row.site else None for row in ROWS).most_common(2)
    for client in clients:
        answer = client.count(run="llama", by="call_site", top=2)
        assert [(key[0], count) for key, count in answer.rows] == expected
        assert answer.count == len(ROWS)
        assert answer.report.notes == ["the 2 largest of 3 groups"]


def test_the_largest_groups_keep_all_their_buckets(clients: list[Client]) -> None:
    for client in clients:
        whole = client.count(run="llama", by="rank", every="20s")
        largest = client.count(run="llama", by="rank", top=1).rows[0][0][0]
        answer = client.count(run="llama", by="rank", every="20s", top=1)
        assert answer.rows == [row for row in whole.rows if row[0][0] == largest]


def test_numbers_are_those_of_the_lines(clients: list[Client]) -> None:
    values = [row.metadata["loss"] for row in ROWS if "loss" in row.metadata]
    finite = sorted(float(value) for value in values if math.isfinite(value))
    for client in clients:
        answer = client.count(run="llama", stats="loss")
        assert answer.stats is not None
        found = answer.stats[0]["loss"]
        assert (found["count"], found["nan"], found["inf"]) == (
            len(finite),
            len(values) - len(finite),
            0,
        )
        assert (found["min"], found["max"]) == (finite[0], finite[-1])
        assert found["mean"] == pytest.approx(math.fsum(finite) / len(finite))
        for share, value in found["quantiles"].items():
            exact = finite[math.floor(float(share) * (len(finite) - 1))]
            assert value == pytest.approx(exact, rel=ERROR * (1 + 1e-9))
        assert answer.to_json()["approximate"] is True


SHAPES: list[dict[str, Any]] = [
    {"by": "call_site"},
    {"by": "call_site", "every": "10s"},
    {"by": ["level", "rank"], "every": "5i"},
    {"by": "template", "every": "1m"},
    {"by": "loss", "top": 3},
    {"every": "7s"},
    {},
]
TERMS = ["*", "level>=INFO", "NOT level:WARNING", "rank:1", "call_site:a.py", "loss>3", '"says a"']


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    shape=st.sampled_from(SHAPES),
    terms=st.lists(st.sampled_from(TERMS), min_size=1, max_size=2, unique=True),
    stats=st.sampled_from([(), ("loss",), ("loss", "iteration")]),
)
def test_scattered_counts_equal_those_of_one_segment_and_of_full_scans(
    clients: list[Client], shape: dict[str, Any], terms: list[str], stats: tuple[str, ...]
) -> None:
    query = " ".join(terms)
    expected = clients[0].count(query, run="llama", stats=stats, full_scan=True, **shape)
    for client in clients:
        answer = client.count(query, run="llama", stats=stats, **shape)
        assert (answer.fields, answer.rows) == (expected.fields, expected.rows)
        assert answer.count == expected.count == len(client.search(query, run="llama").matches)
        assert _rounded(answer.stats) == _rounded(expected.stats)


def _rounded(stats: Any) -> Any:
    """Means to nine digits: they are sums of floats."""
    if isinstance(stats, dict):
        return {key: _rounded(value) for key, value in stats.items()}
    if isinstance(stats, list):
        return [_rounded(value) for value in stats]
    return float(f"{stats:.9g}") if isinstance(stats, float) else stats


def test_what_can_not_be_counted_so_is_refused(clients: list[Client]) -> None:
    with pytest.raises(BadInput, match="no groups"):
        clients[0].count(top=3)
    with pytest.raises(BadInput, match="a top of 0"):
        clients[0].count(by="rank", top=0)
    with pytest.raises(BadQuery, match="rank is no number"):
        clients[0].count(run="llama", stats="rank")
    with pytest.raises(BadInput, match="at most 16 keys"):
        clients[0].count(stats=[f"key{i}" for i in range(17)])


@pytest.fixture(scope="module")
def large() -> Client:
    """Enough lines of few call sites, over two minutes and a half, that the index counts them by time."""
    draw = random.Random(1)
    sites = [CallSite(f"a.py:{i}", "f", "l") for i in range(4)]
    rows = [
        Row(
            f"step {i}",
            ts=T0 + i * SECOND // 40,
            stream=stream(i % 2),
            level=draw.choice([20, 30]),
            site=draw.choice(sites),
        )
        for i in range(6_000)
    ]
    memory = MemoryStore()
    put(memory, "1", rows)
    return Client(store=memory, tenant="acme")


@pytest.mark.parametrize("every", ["10s", "20s", "50s", "1m", "1h", "3m"])
@pytest.mark.parametrize("by", ["call_site", "level,template", ""])
def test_the_index_alone_counts_call_sites_over_time(large: Client, by: str, every: str) -> None:
    answer = large.count("level>=WARNING", run="llama", by=by, every=every)
    scanned = large.count("level>=WARNING", run="llama", by=by, every=every, full_scan=True)
    assert answer.rows == scanned.rows
    assert (answer.report.segments_scanned, scanned.report.segments_scanned) == (0, 1)


@pytest.mark.parametrize(
    ("query", "by", "every"),
    [
        ("*", "call_site", "7s"),  # no multiple of the index's buckets
        ("rank:1", "call_site", "1m"),  # some of a site's lines
        ("*", "rank", "1m"),
        ("time:2026-03-01T00:00:30..00:01", "call_site", "10s"),  # a part of the segment
    ],
)
def test_where_the_index_does_not_say_the_segment_is_read(
    large: Client, query: str, by: str, every: str
) -> None:
    answer = large.count(query, run="llama", by=by, every=every)
    scanned = large.count(query, run="llama", by=by, every=every, full_scan=True)
    assert answer.rows == scanned.rows
    assert answer.report.segments_scanned == 1
