"""A query that runs out of time says what is missing, and its next pages show every line once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranklog import limits
from ranklog.client import Client
from ranklog.client.counting import count
from ranklog.client.reader import local_reader
from ranklog.client.resume import Progress, next_progress
from ranklog.client.search import search
from ranklog.client.words import read_query
from ranklog.errors import BadInput, Cancelled
from ranklog.model.answer import Line
from ranklog.plan.tasks import (
    SegmentFailure,
    decode_outcome,
    decode_task,
    encode_outcome,
    encode_task,
)
from ranklog.scan.scatter import InProcess
from ranklog.store.memory import MemoryStore
from tests.client.test_search import put
from tests.ingest.frames import T0, Row, stream

SECOND = 1_000_000_000
SEGMENTS, LINES = 4, 5


def filled() -> MemoryStore:
    """Segments whose times interleave; some times are equal."""
    store = MemoryStore()
    for number in range(SEGMENTS):
        rows = [
            Row(f"line {number} {i}", ts=T0 + (i // 2 * 7 + number) * SECOND, stream=stream(number))
            for i in range(LINES)
        ]
        put(store, str(number), rows)
    return store


STORE = filled()


class Slow:
    """No time for the segments that `late` names, by their rank."""

    def __init__(self, store: MemoryStore, late: Callable[[int], bool]) -> None:
        self._inner = InProcess(store)
        self._late = late

    def invoke(self, data: bytes) -> bytes:
        task = decode_task(data)
        slow = [s for s in task.segments if self._late(int(s.key.split(".")[1]))]
        rest = replace(task, segments=tuple(s for s in task.segments if s not in slow))
        outcome = decode_outcome(self._inner.invoke(encode_task(rest)))
        outcome.failed += [SegmentFailure(s.number, s.key, "late", late=True) for s in slow]
        return encode_outcome(outcome)


def pages(late_of_page: list[set[int]], limit: int | None, order: str | None) -> list[list[Line]]:
    """Every page of a search whose n-th page has no time for some segments."""
    page = 0
    invoker = Slow(STORE, lambda rank: page < len(late_of_page) and rank in late_of_page[page])
    reader = local_reader(STORE, "acme", invoker=invoker)
    found: list[list[Line]] = []
    cursor: str | None = None
    while True:
        query = read_query("line", {}, now_ns=T0, limit=limit, order=order, cursor=cursor)
        answer = search(reader, query)
        found.append(answer.lines)
        missing = page < len(late_of_page) and late_of_page[page]
        if not missing:
            assert answer.completeness.skipped_tasks == []
        cursor, page = answer.next, page + 1
        if cursor is None:
            return found
        assert page < 100


ALL = {f"line {number} {i}" for number in range(SEGMENTS) for i in range(LINES)}


def test_what_was_late_is_named_and_comes_on_the_next_page() -> None:
    reader = local_reader(STORE, "acme", invoker=Slow(STORE, lambda rank: rank == 2))
    answer = search(reader, read_query("line", {}, now_ns=T0))
    assert (answer.completeness.state, answer.truncated) == ("partial", False)
    [skipped] = answer.completeness.skipped_tasks
    assert (skipped["segment"].split("/")[1], skipped["reason"]) == ("data", "late")
    first, second = pages([{2}], None, None)
    assert len(first) == (SEGMENTS - 1) * LINES
    assert {line.rank for line in second} == {2}


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.sets(st.integers(0, SEGMENTS - 1)), max_size=5),
    st.sampled_from([None, 1, 3, 7]),
    st.sampled_from([None, "newest", "oldest"]),
    st.sampled_from([0, 1, 400]),
)
def test_pages_show_every_line_once_whatever_was_late(
    late: list[set[int]], limit: int | None, order: str | None, named: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "CURSOR_LATE_MAX", named)
        found = [line.text for page in pages(late, limit, order) for line in page]
    assert len(found) == len(ALL)
    assert set(found) == ALL


def test_a_near_whose_inner_query_is_late_shows_nothing_yet() -> None:
    late = [True]
    reader = local_reader(STORE, "acme", invoker=Slow(STORE, lambda rank: late[0] and rank == 1))
    words = 'near("line 1 0", time, 1s, any)'
    answer = search(reader, read_query(words, {}, now_ns=T0))
    assert (answer.lines, answer.completeness.state) == ([], "partial")
    late[0] = False
    rest = search(reader, read_query(words, {}, now_ns=T0, cursor=answer.next))
    assert len(rest.lines) == 6
    assert rest.next is None


def test_a_count_that_runs_out_of_time_says_so() -> None:
    reader = local_reader(STORE, "acme", invoker=Slow(STORE, lambda rank: rank == 2))
    answer = count(reader, read_query("/l.ne/", {}, now_ns=T0))
    assert (answer.count, answer.completeness.state) == ((SEGMENTS - 1) * LINES, "partial")


def test_a_timeout_ends_the_whole_query(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()

    class Hanging:
        def invoke(self, data: bytes) -> bytes:
            gate.wait(60)
            return b""

    client = Client(store=STORE, tenant="acme", invoker=Hanging())
    started = time.monotonic()
    answer = client.search("line", timeout_s=0.1)
    took_s = time.monotonic() - started
    gate.set()
    assert took_s < 20
    assert (answer.lines, len(answer.completeness.skipped_tasks)) == ([], SEGMENTS)
    assert answer.next is not None
    rest = Client(store=STORE, tenant="acme").search("line", cursor=answer.next)
    assert {line.text for line in rest.lines} == ALL
    with pytest.raises(BadInput, match="seconds"):
        client.search("line", timeout_s=0)


def test_closing_a_client_cancels_what_runs() -> None:
    gate = threading.Event()
    client: Client

    class Hanging:
        def invoke(self, data: bytes) -> bytes:
            threading.Thread(target=client.close).start()
            gate.wait(60)
            return b""

    client = Client(store=STORE, tenant="acme", invoker=Hanging())
    with pytest.raises(Cancelled):
        client.search("line")
    gate.set()
    with Client(store=STORE, tenant="acme") as other:
        assert len(other.search("line").lines) == len(ALL)
    with pytest.raises(Cancelled, match="closed"):
        other.search("line")


def test_progress_is_the_later_place() -> None:
    a, b = (5, "s", 0), (9, "s", 0)
    assert next_progress(Progress(), None, [], newest=False) is None
    assert next_progress(Progress(), a, ["x"], newest=False) == Progress(a, False, {"x": None})
    assert next_progress(Progress(b), a, [], newest=False) == Progress(b)
    assert next_progress(Progress(b), a, [], newest=True) == Progress(a)
    ahead = Progress(b, False, {"x": None, "y": None})
    assert next_progress(ahead, a, ["y"], newest=False) == Progress(b, False, {"y": None, "x": a})
    done = Progress(None, True, {"x": a})
    assert next_progress(done, b, [], newest=False) == Progress(None, True, {"x": b})
