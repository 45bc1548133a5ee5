"""The same questions to a store and to an API that serves it have the same answers."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ranklog.agent.sinks import HttpSink
from ranklog.api import answers
from ranklog.api.keys import Keys, hash_key
from ranklog.api.local import make_handler
from ranklog.api.serve import make_server
from ranklog.api.sinks import StoreFrames
from ranklog.cli.main import main
from ranklog.client import Answer, Client
from ranklog.errors import BadInput, BadQuery, NotFound, RanklogError
from ranklog.model.answer import Report
from ranklog.store.disk import DiskStore
from ranklog.store.memory import MemoryStore
from ranklog.store.protocol import Store
from tests.api.job import NOW_NS, frame_of

pytestmark = pytest.mark.sockets
KEY = "the key of this test"


@pytest.fixture(scope="module", params=["memory", "disk"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Store:
    made: Store = MemoryStore()
    if request.param == "disk":
        made = DiskStore(tmp_path_factory.mktemp("api") / "store", create=True)
    sink = StoreFrames(made, lambda: NOW_NS)
    sink.accept("default", frame_of())
    sink.accept("default", frame_of(run="other", ranks=2, number=1))
    return made


@pytest.fixture(scope="module")
def url(store: Store) -> Iterator[str]:
    keys = Keys({"default": [hash_key(KEY)]})
    server = make_server(make_handler(store, keys=keys), host="127.0.0.1", port=0)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def local(store: Store) -> Client:
    return Client(store=store)


@pytest.fixture
def remote(url: str) -> Client:
    return Client(api=url, key=KEY)


def without_cost(report: Report) -> Report:
    return replace(report, ms={}, bytes_read=0)  # indexes stay cached


QUESTIONS: list[dict[str, Any]] = [
    {},
    {"query": "odd"},
    {"query": "loss>5", "run": "job"},
    {"query": "-call_site:train.py:7"},
    {"query": "iteration", "limit": 3},
    {"query": "iteration", "limit": 3, "order": "newest"},
    {"query": "iteration", "limit": 3, "order": "oldest"},
    {"limit": 0, "order": "newest"},
    {"query": "odd", "context": 2},
    {"rank": "0-1", "iteration": "1..3", "level": "INFO"},
    {"host": "gpu-1", "attempt": 0, "since": "2026-01-01T00:00:02", "tz": "UTC"},
    {"query": "odd", "full_scan": True},
    {"query": "nothing such"},
]


@pytest.mark.parametrize("question", QUESTIONS, ids=map(str, QUESTIONS))
def test_searches_are_equal(question: dict[str, Any], local: Client, remote: Client) -> None:
    expected, found = local.search(**question), remote.search(**question)
    # where a segment lies is no part of an answer
    strip = lambda lines: [replace(x, tid=0, template=None, body_at=0) for x in lines]  # noqa: E731
    assert strip(found.lines) == strip(expected.lines)
    assert found.completeness == expected.completeness
    assert without_cost(found.report) == without_cost(expected.report)
    assert (found.next, found.truncated) == (expected.next, expected.truncated)


def test_pages_that_do_not_fit_are_followed(
    local: Client, remote: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = [local.search(limit=limit, order=order) for limit, order in SHAPES]
    monkeypatch.setattr(answers, "RESPONSE_BYTES_MAX", 4_000)
    found = [remote.search(limit=limit, order=order) for limit, order in SHAPES]
    assert [ids(answer) for answer in found] == [ids(answer) for answer in expected]


SHAPES = [(None, None), (None, "newest"), (None, "oldest"), (15, None), (15, "oldest")]


def ids(answer: Answer) -> list[str]:
    return [line.id for line in answer.lines]


def test_counts_are_equal(local: Client, remote: Client) -> None:
    for shape in ({}, {"by": "rank"}, {"by": ["level", "rank"]}, {"every": "2i"}, {"every": "2s"}):
        _same_count(local, remote, shape)


def test_largest_groups_and_numbers_are_equal(local: Client, remote: Client) -> None:
    _same_count(local, remote, {"by": "rank", "top": 1})
    _same_count(local, remote, {"by": "rank", "top": 1, "every": "2i", "stats": "loss,iteration"})
    _same_count(local, remote, {"stats": ["loss"]})
    assert local.count("loss", stats="loss").stats[0]["loss"]["count"] > 0  # type: ignore[index]


def _same_count(local: Client, remote: Client, shape: dict[str, Any]) -> None:
    expected, found = local.count("loss", **shape), remote.count("loss", **shape)
    assert (found.fields, found.rows) == (expected.fields, expected.rows)
    assert (found.count, found.stats) == (expected.count, expected.stats)
    assert found.completeness == expected.completeness


def test_listings_are_equal(local: Client, remote: Client) -> None:
    assert remote.runs().rows == local.runs().rows
    for query, whole in (("world_size:null", True), ("rank:1 NOT owner:ada", False)):
        assert remote.runs(query, manifest=whole).rows == local.runs(query, manifest=whole).rows
    assert remote.streams("job").rows == local.streams("job").rows
    assert [row["rank"] for row in remote.streams("job", rank="1-2")] == [1, 2]
    assert remote.callsites(run="job").rows == local.callsites(run="job").rows
    uneven = {"run": "job", "uneven": True}
    assert remote.callsites("loss", **uneven).rows == local.callsites("loss", **uneven).rows
    for shape in ({}, {"with_": "other"}, {"query": "loss", "limit": 1}):
        expected = local.patterns(run="job", **shape).rows
        assert remote.patterns(run="job", **shape).rows == expected != []


def test_outliers_are_equal(local: Client, remote: Client) -> None:
    expected, found = local.outliers(run="job"), remote.outliers(run="job")
    assert found.rows == expected.rows != []
    assert (found.summary, found.odd) == (expected.summary, [2])
    assert found.completeness == expected.completeness


def test_muted_lines_and_buckets_are_equal(local: Client, remote: Client) -> None:
    muted = {"run": "job", "mute_common": True}
    assert ids(remote.search(**muted)) == ids(local.search(**muted)) != []
    shape = {"run": "job", "every": "2i"}
    assert remote.callsites(**shape).rows == local.callsites(**shape).rows
    assert remote.callsites(**muted).rows == local.callsites(**muted).rows


def test_comparisons_are_equal(local: Client, remote: Client) -> None:
    for shape in ({"ranks": "0,2"}, {"ranks": [0, 1], "all_hunks": True}, {"with_": "other"}):
        expected = local.compare(run="job", **shape)
        assert remote.compare(run="job", **shape).rows == expected.rows
        assert expected.rows or "ranks" not in shape


def test_triages_are_equal(local: Client, remote: Client) -> None:
    for shape in ({"run": "job"}, {"run": "other", "attempt": 0}):
        expected = local.triage(**shape)
        found = remote.triage(**shape)
        assert found.result == expected.result
        assert found.completeness == expected.completeness
    assert expected.result["class"] == "unknown"  # a rank that exits with 1 says nothing


def test_all_lines_come_page_by_page(local: Client, remote: Client) -> None:
    found = [line.id for line in remote.lines(page=4)]
    assert found == [line.id for line in local.lines()]
    assert len(found) == 22


def test_exports_are_equal(local: Client, remote: Client, tmp_path: Path) -> None:
    for name, client in (("local", local), ("remote", remote)):
        client.export("rank:2", run="job", out=tmp_path / name, format="jsonl")
    texts = [
        sorted(
            json.loads(row)["text"]
            for path in (tmp_path / name).rglob("*.jsonl")
            for row in path.read_text().splitlines()
        )
        for name in ("local", "remote")
    ]
    assert texts[0] == texts[1] != []


def test_an_export_of_nothing_or_of_a_query_that_is_wrong_writes_nothing(
    local: Client, remote: Client, tmp_path: Path
) -> None:
    for name, client in (("local", local), ("remote", remote)):
        out = tmp_path / name
        assert client.export("absent", run="job", out=out, format="jsonl").rows == []
        assert list(out.iterdir()) == []
        with pytest.raises(BadQuery):
            client.export("(", run="job", out=tmp_path / f"{name}-bad")
        assert not (tmp_path / f"{name}-bad").exists()


@pytest.mark.parametrize(
    ("question", "error"),
    [
        ({"query": "a ("}, BadQuery),
        ({"run": "nobody"}, NotFound),
        ({"query": "a=3 rank=1"}, BadQuery),
    ],
)
def test_errors_are_equal(
    question: dict[str, Any], error: type[RanklogError], local: Client, remote: Client
) -> None:
    caught = []
    for client in (local, remote):
        with pytest.raises(error) as one:
            client.search(**question)
        caught.append(one.value.to_json())
    assert caught[0] == caught[1]


def test_a_wrong_key_is_refused(url: str) -> None:
    with pytest.raises(RanklogError, match="nobody has this key"):
        Client(api=url, key="wrong").search()


def test_commands_print_the_same(
    store: Store, url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if not isinstance(store, DiskStore):
        pytest.skip("a command names its store by URL")
    monkeypatch.setenv("RANKLOG_API_KEY", KEY)
    for words in (
        ["search", "loss", "--run", "job"],
        ["search", "odd", "--count"],
        ["search", "--by", "rank,level"],
        ["runs"],
        ["streams", "--run", "job"],
        ["callsites", "--run", "job"],
        ["patterns", "--run", "job", "--with", "other"],
        ["compare", "--run", "job", "--ranks", "0,2"],
        ["outliers", "--run", "job"],
    ):
        codes = [main([*words, "--store", store.url]), main([*words, "--api", url])]
        assert codes == [0, 0]
        local_out, remote_out = _halves(capsys.readouterr().out)
        assert local_out == remote_out


def _halves(text: str) -> tuple[str, str]:
    middle = len(text) // 2
    return text[:middle], text[middle:]


def test_a_pin_is_the_same_here_and_there(
    local: Client, remote: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for shape in ({}, {"limit": 3}, {"limit": 0}, {"limit": 3, "order": "newest"}):
        pinned = remote.search("iteration", run="job", pin=True, **shape)
        assert pinned.pin is not None
        name = pinned.pin["id"]
        again = remote.search(pin=name)
        assert ids(again) == ids(pinned) == ids(local.search(pin=name))
        assert (again.pin, again.next) == (pinned.pin, pinned.next)
        with monkeypatch.context() as patch:
            patch.setattr(answers, "RESPONSE_BYTES_MAX", 4_000)
            assert ids(remote.search(pin=name)) == ids(pinned)
    with pytest.raises(BadInput, match="its own query"):
        remote.search("loss", pin=name)
    with pytest.raises(BadInput, match="store"):
        remote.export(pin=name, out="nowhere")


def test_a_tail_goes_from_answer_to_answer(url: str, remote: Client, store: Store) -> None:
    sink = StoreFrames(store, time.time_ns)
    items = remote.tail("odd", rank="0-9")
    sink.accept("default", frame_of(run="tailed", ranks=2, number=20))
    sink.accept("default", frame_of(run="tailed", ranks=2, number=20))
    sink.accept("default", frame_of(run="again", number=21))
    found = [next(items), next(items)]
    assert sorted((item.line.run, item.late) for item in found if item.line) == [
        ("again", False),
        ("tailed", False),
    ]
    begun = remote.tail_page("odd", run="again", wait_s=0)
    assert begun.items == []
    with pytest.raises(BadInput, match="cursor"):
        remote.tail_page("odd", run="tailed", cursor=begun.next, wait_s=0)
    with pytest.raises(RanklogError, match="wait"):
        remote.tail_page("odd", wait_s=1000)


def test_a_step_of_a_tail_fits_into_an_answer(
    remote: Client, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = remote.tail_page("iteration", wait_s=0)
    StoreFrames(store, time.time_ns).accept("default", frame_of(run="large", number=22))
    monkeypatch.setattr(answers, "RESPONSE_BYTES_MAX", 4_000)
    cursor, found = begun.next, []
    for _ in range(8):
        page = remote.tail_page("iteration", cursor=cursor, wait_s=0)
        cursor = page.next
        found += [item.line.id for item in page.items if item.line]
    assert len(found) == len(set(found)) == 12


def test_the_producer_sends_to_it(url: str, remote: Client) -> None:
    HttpSink(url, KEY).put("unused", frame_of(run="sent", number=7))
    assert remote.count(run="sent").count == 13


@pytest.mark.parametrize("by", ["rank", "host", "stream"])
@pytest.mark.parametrize("everyone", [False, True])
def test_who_did_not_say_it(local: Client, remote: Client, by: str, everyone: bool) -> None:
    there, here = (
        client.missing("odd", run="job", by=by, everyone=everyone) for client in (remote, local)
    )
    assert there.rows == here.rows
    assert bool(here.rows) or not everyone
    assert there.completeness.state == here.completeness.state
