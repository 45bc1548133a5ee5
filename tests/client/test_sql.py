"""User SQL reads the views of its tenant and nothing else."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from ranklog.answer.render import render_time
from ranklog.client import Client
from ranklog.errors import BadInput, BadQuery, RanklogError
from ranklog.ingest.batch import Record, ingest_batch
from ranklog.store.disk import DiskStore
from ranklog.store.memory import MemoryStore
from ranklog.store.protocol import Store
from ranklog.stream.frames import encode_frame
from tests.corpus_lines import TENANT, Corpus, random_corpus
from tests.ingest.frames import STREAM, T0, Row, make_frame


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return random_corpus(3)


@pytest.fixture(params=["memory", "disk"])
def store(request: pytest.FixtureRequest, tmp_path: Path, corpus: Corpus) -> Store:
    found: Store = MemoryStore() if request.param == "memory" else DiskStore(tmp_path / "store")
    corpus.ingest(found, twice=True)
    return found


def test_each_line_is_there_once_with_its_rank(store: Store, corpus: Corpus) -> None:
    client = Client(store=store, tenant=TENANT)
    found = client.sql("SELECT stream || ':' || seq, rank, text FROM lines", since="2026-01-01")
    assert sorted(found.rows()) == sorted((x.id, x.rank, x.text) for x in corpus.lines)


def test_a_run_and_bounds_restrict_the_views(store: Store, corpus: Corpus) -> None:
    client = Client(store=store, tenant=TENANT)
    found = client.sql("SELECT count(*) FROM lines", run="other")
    assert list(found.rows()) == [(sum(line.run == "other" for line in corpus.lines),)]


def test_points_are_there_and_empty(store: Store) -> None:
    client = Client(store=store, tenant=TENANT)
    assert list(client.sql("SELECT series, value FROM points").rows()) == []


def test_values_of_the_overflow_column_are_there_by_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ranklog.layout.metadata.METADATA_COLUMNS_MAX", 1)
    store = MemoryStore()
    rows = [
        Row("a", metadata={"x": 1, "loss": 0.1, "odd/~key": "é"}),
        Row("b", metadata={"x": 2, "loss": math.inf, "Odd": 2**62}),
    ]
    after = make_frame([Row("c", metadata={"loss": 0.5})], first_seq={STREAM: 2}, number=2)
    for number, frame in enumerate((make_frame(rows), after)):
        record = Record(encode_frame(frame), T0, str(number))
        ingest_batch([record], store=store, source="s", first=str(number), last=str(number))
    found = Client(store=store, tenant="acme").sql(
        'SELECT text, "meta.x", "meta.loss", "meta.odd/~key", "meta.odd" FROM lines ORDER BY text'
    )
    assert list(found.rows()) == [
        ("a", 1, 0.1, "é", None),
        ("b", 2, math.inf, None, 2**62),
        ("c", None, 0.5, None, None),
    ]


def test_an_empty_store_has_the_views() -> None:
    client = Client(store=MemoryStore(), tenant=TENANT)
    assert list(client.sql("SELECT text, rank FROM lines").rows()) == []


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM read_parquet('http://127.0.0.1:9/x.parquet')",
        "COPY (SELECT 1) TO '/tmp/ranklog-sql-test.csv'",
        "ATTACH '/tmp/ranklog-sql-test.db'",
        "CREATE TABLE x AS SELECT 1",
        "SET enable_external_access = true",
        "PRAGMA enable_external_access",
        "INSTALL httpfs",
        "SELECT 1; SELECT 2",
        "",
        "SELECT * FROM corpus",
        "SELECT nope FROM lines",
        "SELEC 1",
        "DROP VIEW lines",
    ],
)
def test_what_reaches_beyond_the_views_is_refused(store: Store, statement: str) -> None:
    with pytest.raises(BadQuery):
        Client(store=store, tenant=TENANT).sql(statement)


def test_another_tenants_segments_are_out_of_reach(tmp_path: Path, corpus: Corpus) -> None:
    disk = DiskStore(tmp_path / "store")
    corpus.ingest(disk)
    [first, *_] = [item.key for item in disk.list(f"{TENANT}/data/")]
    path = disk.local_path(first)
    with pytest.raises(RanklogError):
        Client(store=disk, tenant="other").sql(f"SELECT * FROM read_parquet('{path}')")


def test_times_are_text_where_python_has_no_nanoseconds(store: Store, corpus: Corpus) -> None:
    client = Client(store=store, tenant=TENANT)
    statement = "SELECT ts, ts_ns FROM lines WHERE stream || ':' || seq = '{}'"
    line = corpus.lines[0]
    found = client.sql(statement.format(line.id), since="2026-01-01")
    assert list(found.rows()) == [(render_time(line.ts_ns), line.ts_ns)]
    assert str(found.to_arrow().schema.field("ts").type) == "timestamp[ns]"


def test_an_index_that_cannot_be_read_is_told_of(tmp_path: Path, corpus: Corpus) -> None:
    store = DiskStore(tmp_path / "store")
    corpus.ingest(store)
    for index in (tmp_path / "store").rglob("*.idx"):
        index.write_bytes(b"")
    found = Client(store=store, tenant=TENANT).sql("SELECT 1", since="2026-01-01")
    assert found.completeness.state == "partial"
    assert found.completeness.skipped_tasks[0]["segment"].endswith(".idx")


@pytest.mark.parametrize("statement", [None, 5, b"SELECT 1"])
def test_a_statement_that_is_no_text_is_refused(statement: Any) -> None:
    with pytest.raises(BadInput, match="is no query"):
        Client(store=MemoryStore()).sql(statement)
