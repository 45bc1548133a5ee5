"""Every kind of answer without what was deleted; what a deletion refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ranklog.client import Client
from ranklog.client.deletion import Deletion, delete, find_deletion
from ranklog.client.reader import local_reader
from ranklog.client.tail import Tail
from ranklog.client.words import read_query
from ranklog.compact.compacting import Compactor
from ranklog.delete.actions import Action, read_actions, record_action
from ranklog.delete.tombstones import load
from ranklog.errors import BadInput, Corrupt, TooLarge, Unavailable
from ranklog.limits import DAY_NS
from ranklog.model import query as q
from ranklog.store.memory import MemoryStore
from tests.client.test_search import ended, put
from tests.client.test_series import put_points
from tests.ingest.frames import T0, Row, stream
from tests.point_frames import Record

SECOND = 1_000_000_000
ROWS = [
    Row(
        f"step {i} secret {i}" if i % 4 == 0 else f"step {i} fine",
        ts=T0 + i * SECOND,
        stream=stream(rank),
        level=20,
        iteration=i,
        metadata={"loss": i / 8},
    )
    for i in range(12)
    for rank in (0, 1)
]


@pytest.fixture
def store() -> MemoryStore:
    made = MemoryStore()
    put(made, "1", ROWS, streams=[ended(stream(0), 12), ended(stream(1), 12)])
    return made


@pytest.fixture
def client(store: MemoryStore) -> Client:
    return Client(store=store, tenant="acme", results_bytes=1 << 20)


def deleted(store: MemoryStore, query: str, *, groups: bool = False, **given: Any) -> Deletion:
    reader = local_reader(store, "acme")
    asked = read_query(query, given or {"run": "llama"}, now_ns=reader.now_ns())  # type: ignore[arg-type]
    return delete(reader, find_deletion(reader, asked, who="ada", why="asked", groups=groups))


def has_secret(rows: object) -> bool:
    return "secret" in str(rows)


def test_no_answer_shows_a_deleted_line(client: Client, store: MemoryStore, tmp_path: Path) -> None:
    assert has_secret(client.search("", run="llama").lines)
    pinned = client.search("step", run="llama", pin=True)
    assert pinned.pin is not None
    assert deleted(store, "secret").lines == 6
    put(store, "2", ROWS)  # the frame again, under another name
    assert not has_secret(client.search("", run="llama").lines)
    assert not has_secret(client.search("rank:1", run="llama", context=3, limit=1).lines)
    assert client.count("secret", run="llama").count == 0
    assert client.count("", run="llama").count == 18
    assert client.count("", run="llama", by="template").rows == [(("step <*> fine",), 18)]
    assert not has_secret(client.callsites(run="llama").rows)
    assert not has_secret(client.patterns(run="llama").rows)
    assert not has_secret(list(client.sql("SELECT text FROM lines", run="llama").rows()))
    client.export(run="llama", out=tmp_path / "out", format="text")
    assert not any(has_secret(f.read_bytes()) for f in (tmp_path / "out").rglob("*") if f.is_file())
    values = client.series("loss rank:0", run="llama").to_pandas()["value"].tolist()
    assert sorted(values) == [i / 8 for i in range(12) if i % 4]
    hunks = client.compare(run="llama", ranks="0,1", all_hunks=True).rows
    assert not has_secret(json.dumps(hunks, default=str))
    again = client.search(pin=pinned.pin["id"])
    assert not has_secret(again.lines)
    assert len(again.lines) == 18
    assert [item["lines"] for item in again.completeness.deleted] == [3, 3]
    [run] = client.runs().rows
    assert (run["lines"], run["completeness"]["state"]) == (18, "complete")
    assert [row["lines"] for row in client.streams("llama").rows] == [9, 9]


def test_deleted_lines_are_counted_and_are_not_missing(client: Client, store: MemoryStore) -> None:
    deleted(store, "secret rank:1")
    found = client.search("", run="llama").completeness
    one = {"stream": stream(1).stream_id, "rank": 1, "lines": 3, "reason": "deleted"}
    assert (found.state, found.deleted, found.gaps) == ("complete", [one], [])
    elsewhere = client.search("", run="llama", since="2026-03-02", until="2026-03-03").completeness
    assert elsewhere.deleted == []


def test_a_rank_whose_lines_were_all_deleted_is_not_absent_after_compaction() -> None:
    made = MemoryStore()
    for rank in (0, 1):
        of_two = replace(stream(rank), world_size=2)
        rows = [replace(row, stream=of_two) for row in ROWS if row.stream.rank == rank]
        put(made, str(rank), rows, streams=[ended(of_two, len(rows))])
    assert deleted(made, "rank:1").lines == 12
    for days in (1, 9):
        hidden = load(made, "acme").hidden
        Compactor(made, "acme", T0 + days * DAY_NS, hidden).run()
        judged = Client(store=made, tenant="acme").search("", run="llama").completeness
        assert (judged.state, judged.absent, judged.streams) == ("complete", [], 2)


def test_points_go_with_their_launch_and_stay_where_lines_go() -> None:
    store = MemoryStore()
    put(store, "1", [Row("secret", stream=stream(0), level=20)])
    put_points(store, "2", [Record({"loss": i / 8}, ts=T0 + i, iteration=i) for i in range(4)])
    deleted(store, "secret")
    client = Client(store=store, tenant="acme")
    assert len(client.series("loss", run="llama").to_pandas()) == 4
    rows = deleted(store, "").lines
    assert rows == 4  # records of points: the line was deleted before
    fresh = Client(store=store, tenant="acme")
    put_points(store, "3", [Record({"loss": i / 8}, ts=T0 + i, iteration=i) for i in range(6)])
    assert len(fresh.series("loss", run="llama").to_pandas()) == 0
    assert fresh.search("kind:point", run="llama").points == []
    assert list(fresh.sql("SELECT count(*) FROM points", run="llama").rows()) == [(0,)]
    [row] = fresh.runs().rows
    assert (row["lines"], row["points"]) == (0, 0)


def test_a_tail_does_not_show_a_deleted_line_that_comes_again(store: MemoryStore) -> None:
    deleted(store, "secret")
    reader = local_reader(store, "acme")
    reader.now_ns = lambda: T0 + 100 * 24 * 3600 * SECOND
    tail = Tail(reader, read_query("", {}, now_ns=T0))
    again = [replace(row, stream=stream(0)) for row in ROWS if row.stream == stream(0)]
    put(store, "2", again)
    put(store, "3", [Row("step 12 new", ts=T0, stream=stream(0))], first_seq={stream(0): 12})
    shown = [item.line.text for _ in range(3) for item in tail.poll() if item.line is not None]
    assert shown == ["step 12 new"]


def test_a_group_goes_whole_only_where_asked() -> None:
    rows = [
        Row("Traceback", stream=stream(0), group=0),
        Row("  secret", stream=stream(0), group=1),
        Row("  end", stream=stream(0), group=2),
        Row("other", stream=stream(0)),
    ]
    texts = {}
    for groups in (False, True):
        store = MemoryStore()
        put(store, "1", rows)
        deleted(store, "secret", groups=groups)
        texts[groups] = [line.text for line in Client(store=store, tenant="acme").search().lines]
    assert texts == {False: ["Traceback", "  end", "other"], True: ["other"]}


def test_nothing_is_deleted_where_not_all_can_be_read(store: MemoryStore) -> None:
    [segment] = [item.key for item in store.list("acme/data/")]
    store.delete(segment)
    with pytest.raises(Unavailable, match="nothing is deleted"):
        deleted(store, "secret")
    assert list(store.list("acme/tombstones/")) == []


def test_hours_that_nobody_named_are_refused(store: MemoryStore) -> None:
    reader = local_reader(store, "acme")
    with pytest.raises(BadInput, match="what hours"):
        find_deletion(reader, q.Query(q.Contains("secret")), who="ada")


def test_matches_in_too_many_places_are_refused(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ranklog.limits.TOMBSTONE_RANGES_MAX", 5)
    with pytest.raises(TooLarge, match="more than 5 places"):
        deleted(store, "secret")


def test_a_damaged_tombstone_fails_the_question(client: Client, store: MemoryStore) -> None:
    key = deleted(store, "secret").key
    assert key is not None
    store.put(key, b"{}")
    fresh = Client(store=store, tenant="acme")
    with pytest.raises(Corrupt, match="damaged"):
        fresh.search("", run="llama")


def test_the_log_says_who_deleted_what_and_why(store: MemoryStore) -> None:
    deleted(store, "secret")
    [entry] = read_actions(store, "acme")
    assert (entry.action, entry.who, entry.why) == ("delete", "ada", "asked")
    assert (entry.details["lines"], entry.details["runs"]) == (6, ["llama@17"])


def test_an_entry_of_the_log_that_was_changed_is_told(store: MemoryStore) -> None:
    key = record_action(store, "acme", Action("delete", 1, "ada"))
    store.put(key, store.get(key).replace(b"ada", b"bob"))
    with pytest.raises(Corrupt, match="was changed"):
        list(read_actions(store, "acme"))
