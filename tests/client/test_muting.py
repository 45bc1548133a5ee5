"""What every rank says at the same rate can be left out, wherever lines are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranklog.client import Client
from ranklog.client.reader import local_reader
from ranklog.client.tail import Tail
from ranklog.client.words import read_query
from ranklog.errors import BadInput
from ranklog.model.frame import CallSite
from ranklog.spmd.callsites import common_keys
from ranklog.store.memory import MemoryStore
from tests.client.test_search import put, texts
from tests.ingest.frames import T0, Row, stream

SECOND = 1_000_000_000
SITE = CallSite("train.py:8", "step")


def rows_of() -> list[Row]:
    rows = [
        Row(f"step {i}", ts=T0 + i * SECOND, stream=stream(r), iteration=i, level=20, site=SITE)
        for i in range(5)
        for r in (0, 1, 2)
    ]
    rows.append(Row("only here", ts=T0 + 3 * SECOND, stream=stream(1), iteration=3))
    rows.append(Row("step 9", ts=T0 + 4 * SECOND, stream=stream(2), site=CallSite("b.py:1")))
    return rows


@pytest.fixture
def store() -> MemoryStore:
    memory = MemoryStore()
    put(memory, "1", rows_of())
    return memory


def test_search_count_and_call_sites_leave_out_what_is_common(store: MemoryStore) -> None:
    client = Client(store=store, tenant="acme")
    assert texts(client.search(run="llama", mute_common=True)) == ["only here", "step 9"]
    assert client.count(run="llama", mute_common=True).rows == [((), 2)]
    sites = client.callsites(run="llama", mute_common=True).rows
    assert [site["template"] for site in sites] == ["only here", "step <*>"]
    assert client.callsites(run="llama").rows[0]["count"] == 15


def test_it_is_told_from_the_whole_run_whatever_is_asked(store: MemoryStore) -> None:
    client = Client(store=store, tenant="acme")
    assert texts(client.search("step rank:2", run="llama", mute_common=True)) == ["step 9"]
    limited = client.search(run="llama", mute_common=True, limit=1, order="oldest")
    assert limited.next is not None
    following = client.search(
        run="llama", mute_common=True, limit=1, cursor=limited.next, order="oldest"
    )
    assert [*texts(limited), *texts(following)] == ["only here", "step 9"]


def test_a_call_site_is_hidden_by_a_term(store: MemoryStore) -> None:
    client = Client(store=store, tenant="acme")
    found = client.search("-call_site:train.py:8", run="llama")
    assert texts(found) == ["only here", "step 9"]


def test_lines_of_one_segment_that_another_run_shares_are_told_apart() -> None:
    memory = MemoryStore()
    other = [replace(row, stream=replace(row.stream, run="other")) for row in rows_of()[:2]]
    put(memory, "1", [*rows_of(), *other])
    client = Client(store=memory, tenant="acme")
    assert texts(client.search(run="llama", mute_common=True)) == ["only here", "step 9"]


def test_a_tail_mutes_and_hides(store: MemoryStore) -> None:
    reader = local_reader(store, "acme")
    reader.now_ns = lambda: T0 + 100 * SECOND
    words = {"run": "llama", "mute_common": True}
    muted = Tail(reader, read_query("", words, now_ns=T0))  # type: ignore[arg-type]
    hidden = Tail(reader, read_query("-call_site:train.py:8", {"run": "llama"}, now_ns=T0))
    new = [
        Row(text, ts=T0 + 50 * SECOND, stream=stream(0), site=SITE if "step" in text else None)
        for text in ("step 7", "new")
    ]
    put(store, "2", new, first_seq={stream(0): 5})
    for tail in (muted, hidden):
        assert [item.line.text for item in tail.poll() if item.line] == ["new"]


def test_a_muted_answer_is_not_pinned(store: MemoryStore) -> None:
    client = Client(store=store, tenant="acme")
    with pytest.raises(BadInput, match="can't be pinned"):
        client.search(run="llama", mute_common=True, pin=True)


def test_lines_by_buckets_stand_beside_their_call_site(store: MemoryStore) -> None:
    client = Client(store=store, tenant="acme")
    first = client.callsites(run="llama", every="2i").rows[0]
    assert first["buckets"] == [
        {"bucket_iteration": 0, "count": 6},
        {"bucket_iteration": 2, "count": 6},
        {"bucket_iteration": 4, "count": 3},
    ]
    rows = client.callsites(run="llama", every="10s").rows
    assert [sum(bucket["count"] for bucket in row["buckets"]) for row in rows] == [15, 1, 1]


@given(
    st.dictionaries(
        st.tuples(st.just("a.py:1"), st.sampled_from("abc")),
        st.dictionaries(st.integers(0, 3), st.integers(1, 50), min_size=1),
    )
)
def test_common_is_said_by_every_rank_about_equally_often(
    counts: Mapping[tuple[str | None, str], Mapping[int, int]],
) -> None:
    ranks = set[int]().union(*counts.values())
    for key in common_keys(counts):
        said = counts[key]
        assert set(said) == ranks
        assert max(said.values()) - min(said.values()) <= max(1, 0.05 * max(said.values()))
