"""Every kind of answer says the same of what is missing, dropped, deleted, quiet and certified since when."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from ranklog.api.local import make_handler
from ranklog.client import Client
from ranklog.client.deletion import delete, find_deletion
from ranklog.client.reader import local_reader
from ranklog.client.words import read_query
from ranklog.limits import SECOND_NS
from ranklog.model.answer import Completeness
from ranklog.model.frame import CallSite, Drop, FrameStream, StreamEnd
from ranklog.store.memory import MemoryStore
from tests.api.job import call
from tests.client.test_search import put
from tests.ingest.frames import T0, Row, stream

WORLD = 5
IMPORTED = replace(
    stream(None, world_size=WORLD), certified="import", channel="console.log", incarnation="f"
)
RUN = {"run": "llama"}


def of(rank: int) -> Any:
    return stream(rank, world_size=WORLD)


def rows_of(rank: int, seqs: range) -> list[Row]:
    site = CallSite("train.py:1", "step")
    return [
        Row(
            f"step {seq} loss 0.{seq}",
            ts=T0 + seq * SECOND_NS,
            stream=of(rank),
            site=site,
            level=20,
            iteration=seq,
            metadata={"loss": seq / 8},
        )
        for seq in seqs
    ]


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    """Rank 0 is whole but for a deleted line, 1 has a hole, 2 is behind and had lines dropped, of which a
    frame tells that came twice, 3 is gone: others of its attempt live on; 4 never appeared. A console file was imported."""
    made = MemoryStore()
    ends = [FrameStream(of(rank), 0, 0, end=StreamEnd(8, 0)) for rank in (0, 1)]
    put(made, "1", [*rows_of(0, range(8)), *rows_of(1, range(3))], streams=ends)
    put(made, "2", rows_of(1, range(5, 8)), first_seq={of(1): 5}, number=2)
    alive = FrameStream(of(2), 0, 0, drops=(Drop(7, "quota"),), alive_ns=T0 + 3_000 * SECOND_NS)
    for name in ("3", "3 again"):
        put(made, name, rows_of(2, range(4)), streams=[alive], number=3)
    gone = FrameStream(of(3), 0, 0, alive_ns=T0 + 20 * SECOND_NS)
    put(made, "4", rows_of(3, range(4)), streams=[gone], number=4)
    put(made, "5", [Row("a console line", ts=T0 + SECOND_NS, stream=IMPORTED)], number=5)
    reader = local_reader(made, "acme")
    query = read_query('rank:0 "step 3"', {"run": "llama"}, now_ns=T0)
    delete(reader, find_deletion(reader, query, who="t"))
    return made


@pytest.fixture(scope="module")
def client(store: MemoryStore) -> Client:
    return Client(store=store, tenant="acme")


def test_what_is_said_of_each_rank(client: Client) -> None:
    told = client.search("", **RUN).completeness
    assert (told.state, told.absent) == ("gaps", [4])
    assert [(gap["rank"], gap["first_seq"], gap["last_seq"]) for gap in told.gaps] == [(1, 3, 4)]
    assert {one["rank"] for one in told.behind} >= {2, 3}
    assert [(one["rank"], one["lines"], one["reason"]) for one in told.dropped] == [(2, 7, "quota")]
    assert [(one["rank"], one["lines"]) for one in told.deleted] == [(0, 1)]
    assert {(one["rank"], one["verdict"]) for one in told.quiet} >= {(3, "gone"), (2, "silent")}
    assert [one["certified"] for one in told.since] == ["import"]


ANSWERS: dict[str, Callable[[Client, Path], Completeness]] = {
    "count": lambda c, _: c.count("", **RUN).completeness,
    "count by": lambda c, _: c.count("loss", by="rank", **RUN).completeness,
    "nothing found": lambda c, _: c.search("nothing like this", **RUN).completeness,
    "oldest first": lambda c, _: c.search("", order="oldest", limit=2, **RUN).completeness,
    "full scan": lambda c, _: c.search("", full_scan=True, **RUN).completeness,
    "series": lambda c, _: c.series("loss", **RUN).completeness,
    "callsites": lambda c, _: c.callsites("", **RUN).completeness,
    "patterns": lambda c, _: c.patterns("", **RUN).completeness,
    "compare": lambda c, _: c.compare("", ranks="0,1", **RUN).completeness,
    "outliers": lambda c, _: c.outliers("", **RUN).completeness,
    "triage": lambda c, _: c.triage("", **RUN).completeness,
    "stacks": lambda c, _: c.stacks("", **RUN).completeness,
    "missing": lambda c, _: c.missing("step 1", **RUN).completeness,
    "streams": lambda c, _: c.streams("llama").completeness,
    "export text": lambda c, out: c.export("", out=out, format="text", **RUN).completeness,
    "export jsonl": lambda c, out: c.export("", out=out, format="jsonl", **RUN).completeness,
    "export parquet": lambda c, out: c.export("", out=out, format="parquet", **RUN).completeness,
    "sql": lambda c, _: c.sql("SELECT count(*) FROM lines", **RUN).completeness,
}


@pytest.mark.parametrize("kind", ANSWERS)
def test_every_kind_of_answer_says_it(kind: str, client: Client, tmp_path: Path) -> None:
    expected = asdict(client.search("", **RUN).completeness)
    found = asdict(ANSWERS[kind](client, tmp_path / "out"))
    assert {name: found[name] for name in expected if found[name] != expected[name]} == {}


ROUTES = [
    ("POST", "/v1/search", {}),
    ("POST", "/v1/count", {}),
    ("POST", "/v1/series", {"query": "loss"}),
    ("POST", "/v1/compare", {"ranks": "0,1"}),
    ("POST", "/v1/outliers", {}),
    ("POST", "/v1/triage", {}),
    ("POST", "/v1/stacks", {}),
    ("POST", "/v1/missing", {"query": "step 1"}),
    ("GET", "/v1/callsites", {}),
    ("GET", "/v1/patterns", {}),
]


@pytest.mark.parametrize(("method", "path", "words"), ROUTES, ids=lambda one: str(one))
def test_every_route_says_it(
    store: MemoryStore, method: str, path: str, words: dict[str, str]
) -> None:
    api = make_handler(store, tenant="acme")
    if method == "POST":
        _, found, _ = call(api, method, path, words | RUN)
    else:
        _, found, _ = call(api, method, path, query=words | RUN)
    told = found["completeness"]
    assert (told["state"], told["absent"], len(told["gaps"])) == ("gaps", [4], 1)
    assert (len(told["dropped"]), len(told["deleted"]), len(told["since"])) == (1, 1, 1)


def test_a_list_of_runs_says_it_of_each_run(client: Client) -> None:
    listing = client.runs("", **RUN)
    [row] = listing.rows
    told = row["completeness"]
    assert (told["state"], told["absent"], len(told["gaps"])) == ("gaps", [4], 1)
    assert (len(told["dropped"]), len(told["deleted"])) == (1, 1)
    assert listing.completeness.state == "complete"  # all runs are listed


def test_a_search_for_points_says_it_too(client: Client) -> None:
    told = client.search("kind:point", **RUN).completeness
    assert told.state != "complete" and told.absent == [4]


def test_an_export_over_http_names_the_state_in_a_header(store: MemoryStore) -> None:
    api = make_handler(store, tenant="acme")
    _, _, headers = call(api, "POST", "/v1/export", {"format": "text", **RUN})
    assert headers["Ranklog-Completeness"] == "gaps"


def test_the_commands_say_it(
    tmp_path: Path, store: MemoryStore, capsys: pytest.CaptureFixture[str]
) -> None:
    from ranklog.cli.main import main
    from ranklog.store.disk import DiskStore

    where = DiskStore(str(tmp_path / "s"), create=True)
    for info in store.list(""):
        where.put(info.key, store.get(info.key))
    at = ["--store", str(tmp_path / "s"), "--tenant", "acme", "--run", "llama", "--json"]
    for words in (
        ["search", "loss"],
        ["search", "loss", "--count"],
        ["callsites"],
        ["patterns"],
        ["missing", "step 1"],
        ["compare", "--ranks", "0,1"],
        ["series", "loss"],
        ["export", "loss", "--out", str(tmp_path / "out")],
        ["sql", "SELECT 1"],
    ):
        main([*words, *at])
        last = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert last["completeness"]["state"] == "gaps", words
        assert last["completeness"]["deleted"], words
