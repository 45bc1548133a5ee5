"""A flipped bit in a segment is told of, or changes nothing: no answer is another and complete."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranklog.client import Client
from ranklog.errors import Corrupt
from ranklog.scan.files import RangedObject
from ranklog.store.disk import DiskStore
from ranklog.store.memory import MemoryStore
from ranklog.store.protocol import Store
from tests.corpus_lines import BOUNDS, TENANT, random_corpus

SEARCHES: list[tuple[str, dict[str, Any]]] = [
    ("", {"limit": None, "order": "oldest"}),
    ("", {"limit": 5}),
    ("loss", {"limit": None, "order": "oldest"}),
    ("level:error OR rank:1", {"limit": 7}),
    ("loss>0 OR dataset:c4", {"limit": None, "order": "oldest"}),
    ("call_site:trainer.py* NOT step", {"limit": 20, "context": 1}),
]
COUNTS: list[tuple[str, dict[str, Any]]] = [
    ("loss", {}),
    ("/[0-9]+[a-z]/", {"by": ["rank", "level"]}),
    ("iteration>=1", {"by": ["dataset"]}),
]
STATEMENTS = [
    "SELECT * FROM lines ORDER BY stream, seq",
    'SELECT rank, count(*), sum("meta.n") FROM lines GROUP BY rank ORDER BY rank',
    "SELECT stream, seq FROM lines WHERE text LIKE '%loss%' ORDER BY stream, seq",
]


@pytest.fixture(params=["memory", "disk"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    for module in ("order", "encoding"):  # several row groups
        monkeypatch.setattr(f"ranklog.layout.{module}.ROW_GROUP_ROWS", 25)
    monkeypatch.setattr("ranklog.layout.order.RARE_ROWS_MAX", 5)
    found: Store = MemoryStore() if request.param == "memory" else DiskStore(tmp_path / "store")
    random_corpus(11, batches=2, rows=60).ingest(found)
    return found


def segments(store: Store) -> list[str]:
    return [item.key for item in store.list(f"{TENANT}/data/")]


def write(store: Store, key: str, data: bytes) -> None:
    """Other bytes under the same name, as a disk or a bucket that fails would give."""
    if isinstance(store, MemoryStore):
        store._objects[key] = (data, store._objects[key][1])
    else:
        store.put(key, data)


def flipped(data: bytes, at: int, bit: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]


def shown(answer: Any) -> tuple[Any, list[dict[str, Any]]]:
    """What an answer says, and what it could not read."""
    said = [repr(x) for x in answer.lines] if hasattr(answer, "lines") else repr(answer.rows)
    return said, answer.completeness.skipped_tasks


def asked(store: Store) -> list[Callable[[], tuple[Any, list[dict[str, Any]]]]]:
    """Questions to a client that remembers nothing."""

    def client() -> Client:
        return Client(store=store, tenant=TENANT)

    return [
        *(lambda q=q, o=o: shown(client().search(q, **o, **BOUNDS)) for q, o in SEARCHES),  # type: ignore[misc]
        *(lambda q=q, o=o: shown(client().count(q, **o, **BOUNDS)) for q, o in COUNTS),  # type: ignore[misc]
    ]


def test_an_answer_is_the_same_or_names_the_damaged_segment(store: Store) -> None:
    rng = random.Random(7)
    questions = asked(store)
    whole = [question() for question in questions]
    assert not any(skipped for _, skipped in whole)
    named = 0
    for _ in range(40):
        key = rng.choice(segments(store))
        data = store.get(key)
        write(store, key, flipped(data, rng.randrange(len(data)), rng.randrange(8)))
        for number in rng.sample(range(len(questions)), 4):
            said, skipped = questions[number]()
            if skipped:
                assert [item["segment"] for item in skipped] == [key]
                assert skipped[0]["reason"].startswith("damaged: ")
                named += 1
            else:
                assert said == whole[number][0], (key, number)
        write(store, key, data)
    assert named > 40
    assert [question() for question in questions] == whole


def test_sql_answers_the_same_or_refuses_by_name(store: Store) -> None:
    rng = random.Random(8)

    def rows(statement: str) -> str:
        client = Client(store=store, tenant=TENANT)
        return repr(list(client.sql(statement, since="2026-01-01").rows()))

    whole = {statement: rows(statement) for statement in STATEMENTS}
    refused = 0
    for _ in range(40):
        key, statement = rng.choice(segments(store)), rng.choice(STATEMENTS)
        data = store.get(key)
        write(store, key, flipped(data, rng.randrange(len(data)), rng.randrange(8)))
        try:
            assert rows(statement) == whole[statement]
        except Corrupt as error:
            assert f"segment {key} can't be read: damaged: bytes " in error.message
            refused += 1
        write(store, key, data)
    assert refused > 10


@pytest.mark.parametrize("format", ["jsonl", "text", "parquet"])
def test_an_export_is_the_same_or_partial(store: Store, format: str, tmp_path: Path) -> None:
    rng = random.Random(9)

    def exported(name: str) -> tuple[dict[str, bytes], list[dict[str, Any]]]:
        out = tmp_path / name
        found = Client(store=store, tenant=TENANT).export("", out=out, format=format, **BOUNDS)
        files = {row["file"]: (out / row["file"]).read_bytes() for row in found.rows}
        return files, found.completeness.skipped_tasks

    whole, _ = exported("whole")
    for i in range(8):
        key = rng.choice(segments(store))
        data = store.get(key)
        write(store, key, flipped(data, rng.randrange(len(data)), rng.randrange(8)))
        files, skipped = exported(str(i))
        if skipped:
            assert [item["segment"] for item in skipped] == [key]
        else:
            assert files == whole
        write(store, key, data)


@cache
def _small() -> tuple[MemoryStore, str, bytes, list[Any]]:
    store = MemoryStore()
    random_corpus(3, batches=1, rows=20).ingest(store)
    key = segments(store)[0]
    return store, key, store.get(key), [question() for question in asked(store)]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data())
def test_any_bit_of_a_segment(draw: st.DataObject) -> None:
    store, key, data, whole = _small()
    at = draw.draw(st.integers(0, len(data) - 1))
    write(store, key, flipped(data, at, draw.draw(st.integers(0, 7))))
    number = draw.draw(st.integers(0, len(whole) - 1))
    said, skipped = asked(store)[number]()
    assert [item["segment"] for item in skipped] == [key] if skipped else said == whole[number][0]


def test_what_has_no_sum_changes_no_answer(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planner names every chunk that a statement reads: other bytes may be anything."""
    before = [question() for question in asked(store)]
    read = RangedObject.read

    def poisoned(item: RangedObject, start: int, end: int) -> bytes:
        summed = bytearray(item.length)
        for first, last, _ in item._sums:
            summed[first:last] = b"\x01" * (last - first)
        data = read(item, start, end)
        return bytes(x if good else 0xFF for x, good in zip(data, summed[start:end], strict=False))

    monkeypatch.setattr(RangedObject, "read", poisoned)
    monkeypatch.setattr(DiskStore, "local_path", lambda self, key: None)
    assert [question() for question in asked(store)] == before


def test_an_index_without_sums_is_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    before = [question() for question in asked(store)]
    monkeypatch.setattr("ranklog.layout.index.SegmentIndex.sums", ())
    assert [question() for question in asked(store)] == before
