"""A pinned question has the same answer for good: after late data, after compaction; or says what is gone."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ranklog.answer.render import completeness_json, line_json
from ranklog.client import Client
from ranklog.client.answer import Answer
from ranklog.errors import BadInput, NotFound
from ranklog.model.frame import Fence
from ranklog.store.memory import MemoryStore
from tests.client.test_search import ended, put
from tests.ingest.frames import T0, Row, stream

SECOND = 1_000_000_000
HOUR = 3_600 * SECOND
ROWS = [Row(f"step {i}", ts=T0 + i * SECOND, stream=stream(i % 2), level=20) for i in range(8)]


@pytest.fixture
def store() -> MemoryStore:
    made = MemoryStore()
    put(made, "2", ROWS)
    return made


@pytest.fixture
def client(store: MemoryStore) -> Client:
    return Client(store=store, tenant="acme", results_bytes=1 << 20)


def text(answer: Answer) -> str:
    """The bytes that a program sees."""
    return "\n".join(json.dumps(line_json(line)) for line in answer.lines)


def name_of(answer: Answer) -> str:
    assert answer.pin is not None
    return str(answer.pin["id"])


def add_late_data(store: MemoryStore) -> None:
    """Lines of the same streams and of others, in the same hour and elsewhere; some stored twice,
    under a name that comes first."""
    put(store, "1", [replace(row, text=row.text + " again") for row in ROWS[:4]])
    put(
        store,
        "3",
        [Row("step late", ts=T0 + 2 * SECOND, stream=stream(0))],
        first_seq={stream(0): 4},
    )
    put(store, "4", [Row("step other", ts=T0 + 3 * SECOND, stream=stream(7))])
    put(store, "5", [Row("step later", ts=T0 + HOUR, stream=stream(1))], first_seq={stream(1): 4})


QUESTIONS: list[dict[str, Any]] = [
    {"query": "step", "run": "llama"},
    {"query": "step", "run": "llama", "limit": 3},
    {"query": "step", "run": "llama", "limit": 3, "order": "oldest"},
    {"query": "step", "run": "llama", "limit": None},
    {"query": '"step 3"', "run": "llama", "context": 1},
    {"query": "rank:1", "since": "2026-03-01T00:00:02", "until": "2026-03-02"},
    {"query": "last:3s", "run": "llama"},
    {"query": 'near("step 3", time, 1s, any)', "run": "llama"},
    {},
]


@pytest.mark.parametrize("question", QUESTIONS, ids=map(str, QUESTIONS))
def test_a_pin_has_the_same_bytes_after_late_data(
    question: dict[str, Any], client: Client, store: MemoryStore
) -> None:
    first = client.search(**question, pin=True)
    assert first.lines
    name = name_of(first)
    assert text(client.search(pin=name)) == text(first)
    add_late_data(store)
    again = client.search(pin=name)
    assert (text(again), again.pin, again.truncated) == (text(first), first.pin, first.truncated)
    assert again.completeness == first.completeness
    assert text(Client(store=store, tenant="acme").search(pin=name)) == text(first)


def test_pages_of_a_pin_go_on_in_the_pin(client: Client, store: MemoryStore) -> None:
    first = client.search("step", run="llama", limit=3, order="oldest", pin=True)
    add_late_data(store)
    lines, cursor = list(first.lines), first.next
    while cursor is not None:
        page = client.search(pin=name_of(first), cursor=cursor)
        lines += page.lines
        cursor = page.next
    assert [line.text for line in lines] == [f"step {i}" for i in range(8)]


def test_the_same_question_is_the_same_pin(client: Client, store: MemoryStore) -> None:
    names = {name_of(client.search("step", run="llama", pin=True)) for _ in range(2)}
    assert len(names) == 1
    assert len(list(store.list("acme/pins/"))) == 1
    add_late_data(store)
    assert name_of(client.search("step", run="llama", pin=True)) not in names


def test_after_compaction_others_have_the_lines(client: Client, store: MemoryStore) -> None:
    first = client.search("step", run="llama", limit=3, pin=True)
    [index] = [item.key for item in store.list("acme/index/")]
    store.delete(index)
    put(store, "8", [*ROWS, Row("step more", ts=T0 + 9 * SECOND, stream=stream(0))])
    again = client.search(pin=name_of(first))
    assert text(again) == text(first)
    assert completeness_json(again.completeness) == completeness_json(first.completeness)


def test_after_deletion_it_says_what_is_gone(client: Client, store: MemoryStore) -> None:
    name = name_of(client.search("step", run="llama", pin=True))
    for item in list(store.list("acme/index/")):
        store.delete(item.key)
    put(store, "8", [row for row in ROWS if row.stream == stream(0)][:2])
    again = client.search(pin=name)
    assert [line.text for line in again.lines] == ["step 0", "step 2"]
    assert again.completeness.state == "partial"
    reasons = {item["segment"]: item["reason"] for item in again.completeness.skipped_tasks}
    assert reasons == {
        f"stream {stream(0).stream_id}": "2 pinned lines are gone, the first is 2",
        f"stream {stream(1).stream_id}": "4 pinned lines are gone, the first is 0",
    }
    for item in list(store.list("acme/runs/")):
        store.delete(item.key)
    assert client.search(pin=name).completeness.state == "partial"


def test_a_pin_is_a_whole_question(client: Client, store: MemoryStore) -> None:
    first = client.search("step", run="llama", limit=3, pin=True)
    for words in ({"query": "x"}, {"run": "llama"}, {"rank": 0}):
        with pytest.raises(BadInput, match="its own query"):
            client.search(pin=name_of(first), **words)
    with pytest.raises(BadInput, match="first page"):
        client.search("step", run="llama", limit=3, cursor=first.next, pin=True)
    with pytest.raises(NotFound, match="no pin"):
        client.search(pin="pin-0123456789abcdef")
    with pytest.raises(BadInput, match="no pin"):
        client.search(pin="../x")
    with pytest.raises(NotFound):
        Client(store=store, tenant="other").search(pin=name_of(first))


def test_what_could_not_be_read_can_not_be_pinned(client: Client, store: MemoryStore) -> None:
    [index] = [item.key for item in store.list("acme/index/")]
    store.put(index, b"broken")
    with pytest.raises(BadInput, match="can't be pinned"):
        client.search("step", run="llama", pin=True)


# --- evidence -----------------------------------------------------------------------------------
@pytest.mark.parametrize("format", ["jsonl", "parquet", "text"])
def test_a_bundle_holds_lines_certificate_segments_and_hashes(
    format: str, client: Client, store: MemoryStore, tmp_path: Path
) -> None:
    notes = [ended(stream(0), 4, fences=(Fence(T0 // HOUR, ((0, 4),)),)), ended(stream(1), 4)]
    put(store, "2b", [], streams=notes)
    name = name_of(client.search("step", run="llama", limit=2, pin=True))
    add_late_data(store)
    listing = client.export(out=tmp_path, format=format, pin=name)
    for line in (tmp_path / "SHA256SUMS").read_text().splitlines():
        digest, _, file = line.partition("  ")
        assert hashlib.sha256((tmp_path / file).read_bytes()).hexdigest() == digest
    certificate = json.loads((tmp_path / "certificate.json").read_text())
    assert (certificate["pin"]["id"], certificate["pin"]["query"]) == (name, '"step"')
    assert (certificate["lines"], certificate["launches"]) == (8, ["llama@17"])
    assert certificate["completeness"]["pinned"]["state"] == "complete"
    assert certificate["completeness"]["now"] == certificate["completeness"]["pinned"]
    [segment] = json.loads((tmp_path / "segments.json").read_text())["segments"]
    assert (segment["state"], len(segment["blake2b_128"])) == ("verified", 32)
    assert {row["file"] for row in listing.rows} >= {"certificate.json", "segments.json"}
    if format == "jsonl":
        lines = (tmp_path / "lines.jsonl").read_text().splitlines()
        assert [json.loads(line)["text"] for line in lines] == [f"step {i}" for i in range(8)]


def test_a_bundle_says_which_segment_was_altered_or_is_gone(
    client: Client, store: MemoryStore, tmp_path: Path
) -> None:
    put(store, "3", [Row("step 8", stream=stream(2))])
    name = name_of(client.search("step", run="llama", pin=True))
    one, two = [item.key for item in store.list("acme/data/")]
    store.put(one, store.get(one)[:-1] + b"x")
    store.delete(two)
    client.export(out=tmp_path, format="jsonl", pin=name)
    segments = json.loads((tmp_path / "segments.json").read_text())["segments"]
    assert {item["segment"]: item["state"] for item in segments} == {one: "altered", two: "gone"}
