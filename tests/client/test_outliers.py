"""Outliers over a store: what is fetched, which attempt, where ranks stand, what is shown."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ranklog.client import Client
from ranklog.client.line_table import fetch_table, fetch_texts
from ranklog.client.local import Local
from ranklog.client.search import begin
from ranklog.client.words import read_query
from ranklog.errors import BadInput, NotFound
from ranklog.layout import keys
from ranklog.model.frame import CallSite
from ranklog.store.memory import MemoryStore
from tests.client.test_search import put
from tests.ingest.frames import T0, Row, stream

SECOND = 1_000_000_000
RANKS, ITERATIONS = 8, 12
SITE = CallSite("train.py:8", "step")
END = T0 + 200 * SECOND


def rows_of(ranks: int = RANKS, **changes: object) -> list[Row]:
    return [
        Row(
            f"iteration {i} loss {2 + rank / 100} fwd_ms {(90 if rank == 6 else 50) + i % 3}",
            ts=T0 + (10 * i + 1) * SECOND + rank,
            stream=replace(stream(rank), host=f"gpu-{rank // 4}", **changes),  # type: ignore[arg-type]
            iteration=i,
            level=20,
            site=SITE,
        )
        for i in range(ITERATIONS)
        for rank in range(ranks)
    ]


@pytest.fixture
def store() -> MemoryStore:
    memory = MemoryStore()
    rows = rows_of()
    one = next(row.stream for row in rows if row.stream.rank == 2)
    rows.append(Row("CUDA error: unspecified launch failure", ts=END, stream=one, level=40))
    put(memory, "1", rows)
    return memory


@pytest.fixture
def client(store: MemoryStore) -> Client:
    return Client(store=store, tenant="acme")


def test_the_odd_ranks_come_with_lines_that_show_it(client: Client) -> None:
    found = client.outliers(run="llama")
    assert found.odd == [6, 2]
    slow, failed = found.rows[:2]
    assert (slow["rank"], slow["evidence"][0]["kind"]) == (6, "slow")
    assert slow["evidence"][0]["name"] == "fwd_ms"
    assert slow["evidence"][0]["call_site"] == "train.py:8"
    assert [line["rank"] for line in slow["evidence"][0]["lines"]] == [6]
    [error] = failed["evidence"]
    assert (error["kind"], error["template"]) == (
        "insert",
        "CUDA error: unspecified launch failure",
    )
    assert [line["text"] for line in error["lines"]] == [error["template"]]
    assert (found.summary["ranks"], found.summary["lines"]) == (8, 97)
    json.dumps(found.to_json(), allow_nan=False)


def test_columns_are_those_of_the_lines(client: Client, store: MemoryStore) -> None:
    assert isinstance(client._backend, Local)
    run = begin(client._backend.reader, read_query("", {"run": "llama"}, now_ns=END))
    table = fetch_table(run, run.expr())
    lines = {(x.stream_id, x.seq): x for x in client.search(run="llama", limit=None).lines}
    assert len(table) == len(lines) == 97
    for row in range(len(table)):
        line = lines[table.id_of(row)]
        key = table.keys[table.key[row]]
        assert (key.call_site, table.ts_ns[row]) == (line.call_site, line.ts_ns)
        assert (table.rank[row], table.level[row]) == (line.rank, line.level)
        assert table.iteration[row] == (-1 if line.iteration is None else line.iteration)
    texts = {(stream_id, seq): text for stream_id, seq, text, _ in fetch_texts(run, run.expr())}
    assert texts == {place: line.text for place, line in lines.items()}


def test_frames_of_tracebacks_are_left_out_of_the_columns() -> None:
    memory = MemoryStore()
    put(memory, "1", [Row("Traceback"), Row('  File "a.py"'), Row("KeyError: 'a'")])
    client = Client(store=memory, tenant="acme")
    assert isinstance(client._backend, Local)
    run = begin(client._backend.reader, read_query("", {"run": "llama"}, now_ns=END))
    table = fetch_table(run, run.expr())
    assert [key.template for key in table.keys] == ["KeyError: 'a'", "Traceback"]
    assert len(table) == 2


def test_the_last_attempt_is_meant_unless_another_is_named(store: MemoryStore) -> None:
    put(store, "2", [replace(row, ts=row.ts + 300 * SECOND) for row in rows_of(attempt=1)])
    client = Client(store=store, tenant="acme")
    assert (client.outliers(run="llama").summary["attempt"], client.outliers(run="llama").odd) == (
        1,
        [6],
    )
    assert client.outliers(run="llama", attempt=0).odd == [6, 2]
    with pytest.raises(NotFound, match="no attempt 4"):
        client.outliers(run="llama", attempt=4)


def test_ranks_and_iterations_can_be_restricted(client: Client) -> None:
    found = client.outliers(run="llama", rank="0-5", iteration="2..6")
    assert (found.summary["ranks"], found.summary["lines"], found.odd) == (6, 24, [])


def test_groups_of_the_manifest_and_of_start_lines_are_dimensions(store: MemoryStore) -> None:
    said = "using world size: 8, data-parallel-size: 2, tensor-model-parallel size: 2, "
    said += "pipeline-model-parallel size: 2"
    put(store, "2", [Row(said, ts=T0, stream=stream(0))], first_seq={stream(0): 50})
    client = Client(store=store, tenant="acme")
    assert client.outliers(run="llama").summary["dimensions"] == [
        "node",
        "local_rank",
        "dp",
        "pp",
        "tp",
    ]
    for rank in range(RANKS):
        piece = json.dumps({"rank": rank, "groups": {"ep": [rank % 4, 4]}, "host": "h"}).encode()
        name = keys.ManifestName(0, rank, "", f"{rank:032x}")
        store.put(keys.manifest_key("acme", "llama", "17", name), piece)
    assert "ep" in client.outliers(run="llama").summary["dimensions"]


def test_a_run_has_to_be_named_and_to_say_who_speaks(client: Client) -> None:
    with pytest.raises(BadInput, match="which run"):
        client.outliers()
    memory = MemoryStore()
    put(memory, "1", [Row("hello", stream=stream(None))])
    found = Client(store=memory, tenant="acme").outliers(run="llama")
    assert (found.rows, found.summary["ranks"]) == ([], 0)
    assert "no line says which rank it is of" in found.report.notes


def test_iterations_that_were_done_again_are_left_out() -> None:
    store = MemoryStore()
    rows = []
    for rank in range(4):
        one = stream(rank)
        for at, iteration in enumerate([*range(20), *range(10, 40)]):
            ts = T0 + at * 1_000_000_000
            if at == 20:
                rows.append(Row("loading checkpoint of 9", ts=ts - 1, stream=one))
            rows.append(Row("forward done", ts=ts, stream=one, iteration=iteration))
            rows.append(Row("backward done", ts=ts, stream=one, iteration=iteration))
            if rank == 2 and 12 <= at < 18:
                rows.append(Row("retry of a fetch", ts=ts, stream=one, iteration=iteration))
    put(store, "0", rows)
    client = Client(store=store, tenant="acme")
    assert client.outliers(run="llama").odd == []
    assert client.outliers(run="llama", attempt="0").rows[0]["rank"] == 2
