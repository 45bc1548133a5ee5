"""Runs, streams, call sites and comparison, over a small store."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ranklog.client import Client
from ranklog.errors import BadInput, NotFound
from ranklog.model.frame import CallSite
from ranklog.store.memory import MemoryStore
from tests.client.test_search import ended, put
from tests.ingest.frames import T0, Row, stream

SECOND = 1_000_000_000
SITE = CallSite("train.py:8", "step")


@pytest.fixture
def client() -> Client:
    store = MemoryStore()
    one, two = (replace(stream(rank), world_size=3) for rank in (0, 1))
    rows = [
        Row(f"step {i}", ts=T0 + i * SECOND, stream=s, iteration=i, level=20, site=SITE)
        for i in range(5)
        for s in (one, two)
    ]
    rows.append(Row("only here", ts=T0 + 3 * SECOND, stream=two, iteration=3))
    put(store, "1", rows, streams=[ended(one, 5), ended(two, 6)])
    put(store, "2", [replace(row, text=row.text) for row in rows[:4]])
    return Client(store=store, tenant="acme")


def test_a_run_is_summed_over_its_streams(client: Client) -> None:
    [run] = client.runs().rows
    assert (run["run_id"], run["state"], run["lines"], run["ranks"]) == (
        "llama@17",
        "finished",
        11,
        [0, 1],
    )
    assert (run["world_size"], run["last_iteration"], run["attempts"][0]["exit_code"]) == (3, 4, 0)
    assert run["attempts"][0]["first"] == run["first"]
    assert run["attempts"][0]["last"] == run["last"]
    assert run["completeness"]["absent"] == [2]
    assert client.runs(run="llama").rows == [run]
    assert client.runs(since="2026-04-01").rows == []


def test_streams_stand_by_rank(client: Client) -> None:
    rows = client.streams("llama").rows
    assert [(row["rank"], row["lines"], row["ended"]) for row in rows] == [
        (0, 5, True),
        (1, 6, True),
    ]
    assert [row["completeness"]["state"] for row in rows] == ["complete", "complete"]


def test_call_sites_are_counted_once_however_often_they_are_stored(client: Client) -> None:
    rows = client.callsites(run="llama").rows
    assert [(row["call_site"], row["template"], row["count"], row["ranks"]) for row in rows] == [
        ("train.py:8", "step <*>", 10, [0, 1]),
        (None, "only here", 1, [1]),
    ]
    assert [row["template"] for row in client.callsites(run="llama", uneven=True).rows] == [
        "only here"
    ]
    assert client.callsites("step rank:1", run="llama").rows[0]["count"] == 5


def test_call_sites_of_indexes_equal_those_of_a_scan() -> None:
    store = MemoryStore()
    rows = [Row(f"step {i}", ts=T0 + i, stream=stream(i % 3), site=SITE) for i in range(9)]
    put(store, "1", rows)
    client = Client(store=store, tenant="acme")
    from_indexes = client.callsites(run="llama")
    assert from_indexes.report.notes == ["from indexes alone"]
    assert from_indexes.rows == client.callsites("*", run="llama", full_scan=True).rows


def test_comparison_finds_the_line_that_one_rank_has_more(client: Client) -> None:
    hunks = client.compare(run="llama", ranks=[0, 1]).rows
    assert [(hunk["template"], hunk["iteration"]) for hunk in hunks] == [("only here", 3)]
    with pytest.raises(BadInput):
        client.compare(ranks="0,1")
    with pytest.raises(NotFound, match="has no rank 9"):
        client.compare(run="llama", ranks=[0, 9])
