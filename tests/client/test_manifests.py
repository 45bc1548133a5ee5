"""Runs with what their processes said of them, asked by keys of their manifests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ranklog import limits
from ranklog.client import Client
from ranklog.errors import BadQuery
from ranklog.model.frame import FrameStream
from ranklog.model.manifest import encode_piece
from ranklog.model.stream import Stream
from ranklog.store.memory import MemoryStore
from tests.client.test_search import ended, put
from tests.ingest.frames import T0, Row, stream


def telling(of: Stream, *pieces: dict[str, Any], rows: int = 0) -> FrameStream:
    """The stream's part of a frame with these pieces, ended if it has rows."""
    noted = ended(of, rows) if rows else FrameStream(of, 0, 0)
    return replace(noted, manifests=tuple(encode_piece(piece) for piece in pieces))


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    for number, (launch, lr) in enumerate((("17", 0.1), ("18", 0.3))):
        zero, one = (replace(stream(rank), launch=launch) for rank in (0, 1))
        rows = [Row("step", ts=T0 + number, stream=zero)]
        given = {"owner": "ada", "config": {"lr": lr}, "tags": {"n": number}, "host": "gpu-1"}
        found = {"git": {"dirty": number, "commit": "abc"}, "machine": {"cpus": 8}}
        mine = {"rank": 1, "host": "gpu-2", "groups": {"tp": [1, 2]}}
        put(
            store,
            str(number),
            rows,
            streams=[telling(zero, given, found, rows=1), telling(one, mine)],
        )
    return store


def test_a_run_shows_what_its_leading_rank_said(store: MemoryStore) -> None:
    newest, _ = Client(store=store, tenant="acme").runs().rows

    assert (newest["owner"], newest["tags"], newest["config"]) == ("ada", {"n": 1}, {"lr": 0.3})
    assert "manifest" not in newest


def test_a_declared_rank_that_never_logged_is_absent(store: MemoryStore) -> None:
    newest, _ = Client(store=store, tenant="acme").runs().rows

    assert newest["ranks"] == [0]
    assert newest["completeness"]["absent"] == [1]
    answer = Client(store=store, tenant="acme").search("*", run="llama")
    assert (answer.completeness.absent, answer.completeness.state) == ([1], "behind")


def test_where_every_index_of_a_launch_is_lost_its_declared_ranks_are_absent(
    store: MemoryStore,
) -> None:
    for item in store.list("acme/index/"):
        store.delete(item.key)
    client = Client(store=store, tenant="acme")

    for answer in (client.search("*", run="llama"), client.count("*", run="llama")):
        assert (answer.completeness.absent, answer.completeness.state) == ([0, 1], "behind")


@pytest.mark.parametrize(
    ("query", "launches"),
    [
        ("config.lr>0.2 git.dirty:1", ["18"]),
        ("config.lr<=0.1", ["17"]),
        ("owner:ada", ["18", "17"]),
        ("owner:bob", []),
        ("NOT git.dirty:1", ["17"]),
        ("git.commit:/^ab/ tags.n:0", ["17"]),
        ("run:llama@17", ["17"]),
    ],
)
def test_runs_are_found_by_keys_of_their_manifests(
    store: MemoryStore, query: str, launches: list[str]
) -> None:
    rows = Client(store=store, tenant="acme").runs(query).rows

    assert [row["run_id"].partition("@")[2] for row in rows] == launches


def test_the_whole_manifest_has_every_rank_and_host(store: MemoryStore) -> None:
    [row] = Client(store=store, tenant="acme").runs("config.lr:0.3", manifest=True).rows

    assert row["manifest"]["git"] == {"commit": "abc", "dirty": 1}
    assert row["manifest"]["hosts"] == {"gpu-1": {"machine": {"cpus": 8}}}
    assert row["manifest"]["ranks"] == {
        "0": {"host": "gpu-1"},
        "1": {"host": "gpu-2", "groups": {"tp": [1, 2]}},
    }
    assert row["topology"] == {"hosts": 2, "ranks_per_host": 1, "groups": {"tp": 2}}


def test_a_key_that_no_run_has_is_a_warning_with_the_nearest(store: MemoryStore) -> None:
    listing = Client(store=store, tenant="acme").runs("config.lrr:0.3")

    assert listing.rows == []
    assert listing.report.warnings == ["no run in scope has the key config.lrr; did you mean config.lr?"]  # fmt: skip


def test_terms_on_lines_are_refused(store: MemoryStore) -> None:
    with pytest.raises(BadQuery, match="runs have no level"):
        Client(store=store, tenant="acme").runs("level>=ERROR")


def test_what_lies_among_the_manifests_and_is_none_is_passed_over(store: MemoryStore) -> None:
    store.put("acme/runs/llama/18/manifests/readme", b"x")
    store.put("acme/runs/llama/18/manifests/0.0.ff.json", b"no JSON")

    assert Client(store=store, tenant="acme").runs("config.lr:0.3").rows[0]["owner"] == "ada"


def test_more_pieces_than_the_limit_are_told(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MANIFEST_PIECES_READ_MAX", 2)
    listing = Client(store=store, tenant="acme").runs("run:llama@18", manifest=True)

    assert listing.report.warnings == ["llama@18 has 3 pieces of a manifest, read were 2"]
