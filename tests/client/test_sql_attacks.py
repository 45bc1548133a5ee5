"""SQL that would like to be elsewhere: files, network, other tenants, the process, all memory, all time."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from ranklog import limits
from ranklog.client import Client
from ranklog.errors import BadQuery, Corrupt, RanklogError, TooLarge
from ranklog.ingest.batch import ingest_batch
from ranklog.model.record import Record
from ranklog.store.disk import DiskStore
from tests.api.job import NOW_NS, frame_of

SECRET = "a-word-of-nobody"


@dataclass(frozen=True, slots=True)
class Place:
    """A store of two tenants, and a file beside it."""

    folder: Path
    store: DiskStore
    own: Path
    other: Path
    secret: Path

    def client(self, seconds: float = 60.0) -> Client:
        return Client(store=self.store, tenant="acme", seconds_left=lambda: seconds)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder = tmp_path_factory.mktemp("sql")
    store = DiskStore(str(folder / "s"), create=True)
    paths = []
    for tenant in ("acme", "other"):
        record = Record(frame_of(tenant), NOW_NS, "1")
        ingest_batch([record], store=store, source="s", first="1", last="1")
        [segment] = store.list(f"{tenant}/data/")
        path = store.local_path(segment.key)
        assert path is not None
        paths.append(path)
    secret = folder / "secret.csv"
    secret.write_text(f"a,b\n1,{SECRET}\n")
    return Place(folder, store, paths[0], paths[1], secret)


def tree_of(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


FILES = [
    "SELECT * FROM read_csv('{secret}')",
    "SELECT * FROM '{secret}'",
    "SELECT * FROM read_text('{secret}')",
    "SELECT * FROM read_blob('{secret}')",
    "SELECT * FROM read_json('{secret}')",
    "SELECT * FROM read_ndjson_objects('{secret}')",
    "SELECT * FROM sniff_csv('{secret}')",
    "SELECT * FROM glob('{folder}/*')",
    "SELECT * FROM query('SELECT * FROM read_csv(''{secret}'')')",
    "SELECT * FROM query_table('{secret}')",
    "WITH x AS (SELECT * FROM read_csv('{secret}')) SELECT * FROM x",
    "SELECT (SELECT b FROM read_csv('{secret}'))",
    "SELECT * FROM lines, LATERAL (SELECT * FROM read_text('{secret}'))",
    "SELECT * FROM lines WHERE text IN (FROM read_csv('{secret}'))",
    "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT 1'))",
]
TENANTS = [
    "SELECT * FROM read_parquet('{other}')",
    "SELECT * FROM '{other}'",
    "SELECT * FROM parquet_scan('{other}')",
    "SELECT * FROM parquet_metadata('{other}')",
    "SELECT * FROM parquet_schema('{other}')",
    "SELECT * FROM parquet_bloom_probe('{other}', 'text', 'x')",
    "SELECT * FROM read_parquet('{own}/../../../../../other/data/*/*/*')",
    "SELECT * FROM read_parquet('{own}')",
    "SELECT * FROM segment_files",
    "SELECT sql FROM duckdb_views()",
    "SELECT * FROM sqlite_master",
]
NETWORK = [
    "SELECT * FROM 'http://127.0.0.1:9/x.csv'",
    "SELECT * FROM read_csv('s3://bucket/x')",
    "SELECT * FROM read_parquet('https://127.0.0.1:9/x')",
    "INSTALL httpfs",
    "LOAD httpfs",
]
WRITES = [
    "COPY (SELECT 1) TO '{folder}/out.csv'",
    "EXPLAIN ANALYZE COPY (SELECT 1 AS a) TO '{folder}/out.csv'",
    "EXPLAIN ANALYZE COPY (SELECT 1 AS a) TO '{own}' (FORMAT csv, USE_TMP_FILE false)",
    "EXPLAIN (ANALYZE) COPY (SELECT 1 AS a) TO '{own}' (FORMAT csv, USE_TMP_FILE false)",
    "EXPLAIN/**/ANALYZE COPY (SELECT 1 AS a) TO '{own}' (FORMAT csv, USE_TMP_FILE false)",
    "EXPLAIN EXPLAIN ANALYZE COPY (SELECT 1 AS a) TO '{own}'",
    "EXPLAIN ANALYZE DROP VIEW lines",
    "EXPLAIN ANALYZE CREATE TABLE x AS SELECT 1",
    "EXPLAIN ANALYZE SET threads = 1",
    "ATTACH '{folder}/x.db'",
    "EXPORT DATABASE '{folder}/x'",
    "INSERT INTO lines VALUES (1)",
    "UPDATE lines SET text = 'x'",
    "DELETE FROM lines",
    "CREATE MACRO f() AS 1",
    "DROP VIEW lines",
    "CHECKPOINT",
    "VACUUM",
    "BEGIN",
]
PROCESS = [
    "SELECT getenv('RANKLOG_SQL_TEST')",
    "SELECT current_setting('home_directory')",
    "SELECT * FROM duckdb_settings()",
    "SELECT * FROM pg_settings",
    "SELECT * FROM duckdb_secrets()",
    "SELECT * FROM which_secret('s3://x', 's3')",
    "SELECT * FROM duckdb_extensions()",
    "SELECT * FROM enable_logging()",
    "SELECT * FROM pandas_scan(1)",
    "SELECT * FROM arrow_scan(1, 2, 3)",
    "SELECT * FROM python_map_function(1)",
    "SELECT * FROM place",
    "SELECT sleep_ms(100000)",
    "SELECT 'x'.pg_sleep()",
    "SELECT write_log('x')",
    "SET enable_external_access = true",
    "RESET lock_configuration",
    "PRAGMA database_list",
    "CALL pragma_version()",
    "PREPARE v AS SELECT 1",
]


@pytest.mark.parametrize("statement", FILES + TENANTS + NETWORK + WRITES + PROCESS)
def test_it_is_refused_and_nothing_is_changed(
    place: Place, statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANKLOG_SQL_TEST", SECRET)
    before = tree_of(place.folder)
    asked = statement.format(
        secret=place.secret, folder=place.folder, own=place.own, other=place.other
    )
    with pytest.raises((BadQuery, Corrupt)) as refused:
        place.client().sql(asked)
    assert SECRET not in str(refused.value)
    assert tree_of(place.folder) == before


def test_another_tenant_is_seen_by_no_view(place: Place) -> None:
    rows = list(place.client().sql("SELECT count(*), count(DISTINCT run_id) FROM lines").rows())
    assert rows == [(13, 1)]
    assert os.path.getsize(place.other) > 0


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT rank, count(*) FROM lines GROUP BY rank ORDER BY rank",
        "WITH a AS (SELECT rank FROM lines), b AS (FROM a) SELECT * FROM b JOIN A USING (rank)",
        "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t WHERE n < 5) FROM t",
        "FROM lines SELECT text WHERE regexp_matches(text, 'loss') LIMIT 3",
        "EXPLAIN SELECT * FROM lines",
        "explain analyze select count(*) from lines",
        "DESCRIBE lines",
        "SHOW TABLES",
        "SUMMARIZE lines",
        "SELECT count(*) FROM points",
        "VALUES (1), (2)",
        "SELECT l.text FROM lines AS l",
        "SELECT * FROM range(3) t(n), unnest([1, 2])",
        "SELECT repeat('#', 20), lpad(text, 40, ' ') FROM lines",
        "SELECT * FROM (PIVOT (FROM lines) ON rank IN (0, 1) USING count(*) GROUP BY level)",
        "SELECT json_extract('{\"a\": 1}', '$.a');",
    ],
)
def test_what_reads_the_views_is_answered(place: Place, statement: str) -> None:
    assert list(place.client().sql(statement).rows()) != []


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT repeat('x', 4000000000)",
        "SELECT repeat(text, rank + 4000000000) FROM lines",
        "SELECT repeat(repeat(repeat('x', 9999), 9999), 9999)",
        "SELECT lpad('x', 4000000000, 'y')",
        "SELECT range(1000000000)",
        "SELECT bitstring('1', 4000000000)",
        "SELECT " + "(" * 20_000 + "1" + ")" * 20_000,
        "SELECT 1 WHERE " + "NOT " * 10_000 + "true",
        "SELECT " + "(" * 30_000 + "1",
        "SELECT " + ")" * 20_000 + "'" + "(" * 20_000 + "1",
        "SELECT * FROM " + "(SELECT * FROM " * 3_000 + "lines" + ")" * 3_000,
        "SELECT regexp_matches(text, '((a{0,100}){0,100}){0,100}') FROM lines",
        "SELECT DATE '290000-01-01'",
    ],
)
def test_what_would_take_all_memory_or_is_too_deep_is_refused(place: Place, statement: str) -> None:
    with pytest.raises(BadQuery):
        list(place.client().sql(statement).rows())


def test_a_statement_has_a_size() -> None:
    from ranklog.store.memory import MemoryStore

    client = Client(store=MemoryStore(), tenant="t")
    with pytest.raises(TooLarge, match="a statement of 65570 bytes, limit 65536"):
        client.sql("SELECT '" + "x" * limits.SQL_BYTES_MAX + "' FROM lines ORDER BY rank")


def test_an_answer_has_a_size(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SQL_RESULT_BYTES_MAX", 4 * limits.MIB)
    with pytest.raises(TooLarge, match="an answer of over 4 MiB"):
        place.client().sql("SELECT * FROM range(100000000000)")


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT list(n) FROM range(10000000000) t(n)",
        "SELECT string_agg(repeat(text, 10000)) FROM lines, range(1000000)",
    ],
)
def test_memory_has_a_limit_and_nothing_spills(
    place: Place, statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SQL_MEMORY_BYTES_MAX", 64 * limits.MIB)
    before = tree_of(place.folder)
    with pytest.raises(TooLarge, match="needs over 64 MiB of memory"):
        place.client().sql(statement)
    assert tree_of(place.folder) == before


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT count(*) FROM range(1000000000000) t(a), range(1000) u(b) WHERE hash(a + b) = 5",
        "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t) SELECT max(n) FROM t",
        "SELECT sum(a * b) FROM range(10000000) t(a), range(10000000) u(b)",
    ],
)
def test_time_has_a_limit(place: Place, statement: str) -> None:
    with pytest.raises(TooLarge, match=r"took over 0\.5 s"):
        place.client(seconds=0.5).sql(statement)
    with pytest.raises(TooLarge, match=r"took over 0\.4 s .*--timeout S"):
        place.client().sql(statement, timeout_s=0.4)


def test_damage_is_still_told_apart_from_a_bad_statement(tmp_path: Path) -> None:
    store = DiskStore(str(tmp_path / "s"), create=True)
    ingest_batch(
        [Record(frame_of("acme"), NOW_NS, "1")], store=store, source="s", first="1", last="1"
    )
    [segment] = store.list("acme/data/")
    path = store.local_path(segment.key)
    assert path is not None
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 255
    path.write_bytes(bytes(damaged))
    with pytest.raises(RanklogError) as error:
        Client(store=store, tenant="acme").sql("SELECT text FROM lines")
    assert not isinstance(error.value, BadQuery)
