"""What is seen of a request: its route, tenant and runs, how it ended and what it read; never its words."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from ranklog.api.app import make_api
from ranklog.api.observed import Observed
from ranklog.api.settings import Settings
from ranklog.api.sinks import StoreFrames
from ranklog.client import Client
from ranklog.objectives import names
from ranklog.store.memory import MemoryStore
from tests.api.job import NOW_NS, call, frame_of

OCTETS = {"content-type": "application/octet-stream"}


class Api:
    """An API over a small job, and what was seen of each request."""

    def __init__(self) -> None:
        store = MemoryStore()
        client = Client(store=store, tenant="default")
        self.seen: list[Observed] = []
        self.begun: list[str | None] = []
        self._handler = make_api(
            Settings(
                lambda tenant: client,
                sink=StoreFrames(store, lambda: NOW_NS),
                tenant="default",
                begun=lambda observed: self.begun.append(observed.tenant),
                observe=self.seen.append,
            )
        )
        self.call("POST", "/v1/frames", frame_of(), headers=OCTETS)

    def call(self, *words: Any, **options: Any) -> Observed:
        call(self._handler, *words, **options)
        return self.seen[-1]


def test_a_search_is_seen_with_its_run_and_what_it_read() -> None:
    api = Api()
    seen = api.call("POST", "/v1/search", {"query": "odd", "run": "job"})
    assert (seen.tenant, seen.route, seen.status) == ("default", ("POST", "/v1/search"), 200)
    assert (seen.runs, seen.state) == (["job@l1"], "complete")
    assert seen.bytes_read > 0 and seen.row_groups == 1 and seen.ms > 0
    counts = seen.measures().counts
    assert (counts[names.QUERIES], counts[names.ANSWERS["complete"]]) == (1, 1)
    assert counts[names.BYTES_READ] == seen.bytes_read
    assert seen.measures().times(names.QUERY_MS).count == 1
    assert api.begun == ["default", "default"]


def test_no_word_of_the_question_is_seen() -> None:
    api = Api()
    seen = api.call("POST", "/v1/search", {"query": '"zebra" OR odd', "host": "elephant"})
    shown = " ".join(str(getattr(seen, item.name)) for item in fields(seen))
    assert "zebra" not in shown and "odd" not in shown and "elephant" not in shown


@pytest.mark.parametrize(
    ("words", "status", "queries"),
    [
        (("POST", "/v1/count", {"query": "loss"}), 200, 1),
        (("GET", "/v1/runs"), 200, 1),
        (("GET", "/v1/runs/job/streams"), 200, 1),
        (("POST", "/v1/search", {"query": "("}), 400, 1),
        (("POST", "/v1/search", {"unknown": 1}), 400, 1),
        (("POST", "/v1/frames", b"no frame"), 400, 0),
        (("GET", "/v1/slo"), 200, 0),
        (("GET", "/v1/nothing"), 404, 0),
    ],
)
def test_questions_are_counted_and_the_rest_is_not(
    words: tuple[Any, ...], status: int, queries: int
) -> None:
    seen = Api().call(*words, headers=OCTETS if words[1] == "/v1/frames" else None)
    assert (seen.status, seen.measures().counts[names.QUERIES]) == (status, queries)


def test_a_tail_that_waits_says_nothing_of_how_long_questions_take() -> None:
    seen = Api().call("GET", "/v1/tail", query={"wait": "0"})
    measures = seen.measures()
    assert (seen.status, measures.counts[names.QUERIES]) == (200, 1)
    assert measures.times(names.QUERY_MS).count == 0


def test_what_breaks_is_counted_as_failed_and_not_as_fast(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def breaks(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    api = Api()
    monkeypatch.setattr("ranklog.client.local.search", breaks)
    measures = api.call("POST", "/v1/search", {"query": "odd"}).measures()
    assert (measures.counts[names.QUERIES], measures.counts[names.QUERIES_FAILED]) == (1, 1)
    assert measures.times(names.QUERY_MS).count == 0


def test_who_has_no_tenant_is_not_seen() -> None:
    api = Api()
    before = len(api.seen)
    call(api._handler, "GET", "/v1/health")
    assert len(api.seen) == before


@pytest.mark.parametrize(
    ("states", "worst"), [(["complete", "gaps", "behind"], "gaps"), (["partial"], "partial")]
)
def test_of_several_answers_the_worst_state_counts(states: list[str], worst: str) -> None:
    class Answer:
        def __init__(self, state: str) -> None:
            self.completeness = type("Completeness", (), {"state": state})

    observed = Observed("q")
    for state in states:
        observed.saw(Answer(state))
    observed.saw(object())
    assert observed.state == worst
