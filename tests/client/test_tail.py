"""A tail shows every line once, in order within its stream, and says where it had to leave a hole."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranklog import limits
from ranklog.client.reader import Reader, local_reader
from ranklog.client.tail import Tail, TailItem
from ranklog.client.tail_cursor import tail_page
from ranklog.client.words import read_query
from ranklog.errors import BadInput, BadQuery, Unavailable
from ranklog.ingest.batch import ingest_batch
from ranklog.model.record import Record
from ranklog.model.stream import Stream
from ranklog.store.memory import MemoryStore
from ranklog.stream.frames import encode_frame
from tests.ingest.frames import STREAM, T0, Row, make_frame, stream

SECOND = 1_000_000_000
HOUR = 3_600 * SECOND
NOW = T0 + 600 * SECOND


class Job:
    """A store, a clock, and lines that arrive in it."""

    def __init__(self, store: MemoryStore | None = None) -> None:
        self.store = store or MemoryStore()
        self.now_ns = NOW
        self.batches = 0
        self.reader: Reader = local_reader(self.store, "acme")
        self.reader.now_ns = lambda: self.now_ns

    def tail(self, query: str = "", **given: str) -> Tail:
        return Tail(self.reader, read_query(query, given, now_ns=self.now_ns))  # type: ignore[arg-type]

    def say(self, first: int, end: int, one: Stream = STREAM, ts: int | None = None) -> None:
        """Lines first..end-1 of a stream are committed."""
        self.batches += 1
        at = self.now_ns if ts is None else ts
        rows = [Row(f"line {seq}", ts=at, stream=one) for seq in range(first, end)]
        data = encode_frame(make_frame(rows, first_seq={one: first}))
        name = f"{self.batches:04d}"
        record = Record(data, self.now_ns, name)
        report = ingest_batch([record], store=self.store, source="k", first=name, last=name)
        assert report.bad == []

    def wait(self, seconds: float) -> None:
        self.now_ns += int(seconds * SECOND)


def shown(items: list[TailItem]) -> list[object]:
    """Seqs of lines, `late 3`, and holes as (first, end)."""
    found: list[object] = []
    for item in items:
        if item.line is not None:
            found.append(f"late {item.line.seq}" if item.late else item.line.seq)
        elif item.hole is not None:
            found.append((item.hole.first, item.hole.end))
        else:
            found.append(item.skipped)
    return found


def test_only_what_is_committed_after_its_beginning_is_shown_and_once() -> None:
    job = Job()
    job.say(0, 3)
    tail = job.tail()
    assert shown(tail.poll()) == []
    job.say(3, 5)
    assert shown(tail.poll()) == [3, 4]
    assert shown(tail.poll()) == []
    job.say(2, 6)  # most of it again
    assert shown(tail.poll()) == [5]


def test_a_stream_waits_at_a_hole_and_goes_on_when_it_is_filled() -> None:
    job = Job()
    tail = job.tail()
    job.say(0, 2)
    job.say(3, 5)
    assert shown(tail.poll()) == [0, 1]
    job.wait(4)
    assert shown(tail.poll()) == []
    job.say(2, 3)
    assert shown(tail.poll()) == [2, 3, 4]


def test_after_five_seconds_the_hole_is_marked_and_what_fills_it_is_late() -> None:
    job = Job()
    tail = job.tail()
    job.say(0, 2)
    job.say(4, 6)
    assert shown(tail.poll()) == [0, 1]
    job.wait(5)
    assert shown(tail.poll()) == [(2, 4), 4, 5]
    job.say(2, 7)
    assert shown(tail.poll()) == ["late 2", "late 3", 6]


def test_other_streams_do_not_wait() -> None:
    job = Job()
    tail = job.tail()
    job.say(1, 3, stream(0))
    job.say(0, 1, stream(1))
    assert [item.line.rank for item in tail.poll() if item.line] == [1]


def test_lines_of_old_hours_are_found_by_their_pointers() -> None:
    job = Job()
    tail = job.tail()
    job.say(0, 2, ts=T0 - 50 * HOUR)
    assert shown(tail.poll()) == [0, 1]
    job.say(2, 3, ts=job.now_ns + HOUR // 2)
    assert shown(tail.poll()) == [2]


def test_an_ingest_that_lags_hours_behind_is_found_now_and_then() -> None:
    job = Job()
    tail = job.tail()
    late, job.now_ns = job.now_ns, job.now_ns - 3 * HOUR
    job.say(0, 2)
    job.now_ns = late + 1
    assert shown(tail.poll()) == []
    job.wait(15)
    assert shown(tail.poll()) == [0, 1]


def test_a_pointer_before_its_index_is_asked_for_again() -> None:
    job = Job()
    tail = job.tail()
    job.say(0, 2, ts=T0 - 50 * HOUR)
    [key] = [item.key for item in job.store.list("acme/index/")]
    data = job.store.get(key)
    job.store.delete(key)
    for _ in range(2 * limits.TAIL_TRIES_MAX):
        assert shown(tail.poll()) == []
        job.wait(5)
    job.store.put(key, data)
    assert shown(tail.poll()) == [0, 1]


def test_a_stream_that_was_quiet_for_days_has_no_hole() -> None:
    job = Job()
    job.say(0, 2)
    job.wait(100 * 3600)
    tail = job.tail()
    job.say(2, 3)
    assert shown(tail.poll()) == [2]
    job.say(0, 4)  # all of it again
    assert shown(tail.poll()) == [3]


def test_the_clock_goes_on_and_nothing_is_lost_at_the_hour() -> None:
    job = Job()
    tail = job.tail()
    seen: list[object] = []
    for seq in range(40):
        job.say(seq, seq + 1)
        job.wait(300)
        seen += shown(tail.poll())
    assert seen == list(range(40))


def test_a_query_and_a_run_restrict_what_is_shown() -> None:
    job = Job()
    other = replace(STREAM, run="other")
    job.say(0, 1)
    job.say(0, 1, other)
    one, two = job.tail("3 OR 4", run="llama"), job.tail("rank:9")
    job.say(1, 6)
    job.say(1, 6, other)
    job.say(0, 2, stream(9))
    found = one.poll()
    assert shown(found) == [3, 4]
    assert {item.line.run for item in found if item.line} == {"llama"}
    assert shown(two.poll()) == [0, 1]


def test_all_launches_of_a_run_can_be_followed() -> None:
    job = Job()
    job.say(0, 1)
    tail = job.tail(run="llama@*")
    job.say(0, 1, replace(STREAM, launch="18"))
    job.say(0, 1, replace(STREAM, run="other"))
    assert [item.line.run_id for item in tail.poll() if item.line] == ["llama@18"]


def test_much_at_once_is_shown_bit_by_bit_in_order() -> None:
    job = Job()
    tail = job.tail()
    job.say(0, 50)
    rounds = [shown(tail.poll(rows=20)) for _ in range(4)]
    assert [len(found) for found in rounds] == [20, 20, 10, 0]
    assert [seq for found in rounds for seq in found] == list(range(50))


def test_streams_of_one_round_are_merged_by_time_and_each_keeps_its_order() -> None:
    job = Job()
    tail = job.tail()
    job.say(0, 1, stream(0), ts=NOW + 3)
    job.say(1, 2, stream(0), ts=NOW + 1)  # a clock that ran back
    job.say(0, 1, stream(1), ts=NOW + 2)
    assert [(i.line.rank, i.line.seq) for i in tail.poll() if i.line] == [(1, 0), (0, 0), (0, 1)]


def test_what_can_not_be_read_is_named_and_the_rest_goes_on() -> None:
    job = Job()
    tail = job.tail()
    job.say(0, 2)
    [segment] = [item.key for item in job.store.list("acme/data/")]
    job.store.put(segment, b"x" * len(job.store.get(segment)))
    [broken] = tail.poll()
    assert broken.skipped is not None and broken.skipped["segment"] == segment
    assert broken.to_json()["kind"] == "skipped"
    job.say(2, 3)
    assert shown(tail.poll()) == [2]


def test_a_damaged_index_is_named_at_last() -> None:
    job = Job()
    tail = job.tail()
    job.say(0, 2)
    [index] = [item.key for item in job.store.list("acme/index/")]
    job.store.put(index, b"broken")
    found = []
    for _ in range(limits.TAIL_TRIES_MAX + 1):
        found += tail.poll()
        job.wait(6)
    assert [item.skipped["segment"] for item in found if item.skipped] == [index]


def test_a_store_that_fails_for_a_while_loses_nothing() -> None:
    class Flaky(MemoryStore):
        failing = False

        def get_range(self, *args: object, **given: object) -> bytes:
            if self.failing:
                raise Unavailable("not now")
            return super().get_range(*args, **given)  # type: ignore[arg-type]

    store = Flaky()
    job = Job(store)
    tail = job.tail()
    job.say(0, 2)
    store.failing = True
    assert shown(tail.poll()) == []
    store.failing = False
    assert shown(tail.poll()) == [0, 1]


def test_memory_is_bounded_and_a_forgotten_stream_is_looked_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "TAIL_STREAMS_MAX", 2)
    job = Job()
    tail = job.tail()
    for rank in range(4):
        job.say(0, 2, stream(rank))
        assert shown(tail.poll()) == [0, 1]
    assert len(tail.state.following.streams) <= 2
    job.say(0, 3, stream(0))
    assert shown(tail.poll()) == [2]


@pytest.mark.parametrize(
    ("query", "given"), [("near(a, time, 5s)", {}), ("", {"last": "5m"}), ("/(?=a)/", {})]
)
def test_what_a_tail_can_not_answer_is_refused(query: str, given: dict[str, str]) -> None:
    with pytest.raises(BadQuery):
        Job().tail(query, **given)


# --- every order of arrival ---------------------------------------------------------------------
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_every_line_is_shown_once_and_in_order(data: st.DataObject) -> None:
    job = Job()
    tail = job.tail()
    cuts = data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=5))
    batches = [(rank, cut, cut + 1 + cut % 4) for cut in cuts for rank in (0, 1)]
    batches += data.draw(st.lists(st.sampled_from(batches), max_size=2))
    found: list[TailItem] = []
    for rank, first, end in data.draw(st.permutations(batches)):
        hours = data.draw(st.sampled_from([0, 0, 1, 30]))
        job.say(first, end, stream(rank), ts=job.now_ns - hours * HOUR)
        if data.draw(st.booleans()):
            found += tail.poll(rows=data.draw(st.sampled_from([2, 1000])))
            job.wait(data.draw(st.sampled_from([0, 1, 4, 3000])))
    for _ in range(60):
        found += tail.poll(rows=1000)
        job.wait(1)
    for rank in (0, 1):
        expected = {seq for r, first, end in batches if r == rank for seq in range(first, end)}
        mine = [item for item in found if item.line is not None and item.line.rank == rank]
        assert sorted(item.line.seq for item in mine if item.line) == sorted(expected)
        on_time = [item.line.seq for item in mine if item.line and not item.late]
        assert on_time == sorted(on_time)
        holes = [item.hole for item in found if item.hole and item.hole.rank == rank]
        for item in mine:
            inside = any(h.first <= item.line.seq < h.end for h in holes if item.line)
            assert item.late == inside


# --- between requests ---------------------------------------------------------------------------
def test_a_cursor_goes_on_in_another_process_and_can_be_asked_again() -> None:
    job = Job()
    job.say(0, 2)
    query = read_query("", {"run": "llama"}, now_ns=job.now_ns)
    begun = tail_page(job.reader, query, None, wait_s=0)
    job.say(2, 4)
    job.say(5, 6)
    first = tail_page(job.reader, query, begun.next, wait_s=0)
    again = tail_page(job.reader, query, begun.next, wait_s=0)
    assert shown(first.items) == shown(again.items) == [2, 3]
    job.wait(5)
    second = tail_page(job.reader, query, first.next, wait_s=0)
    assert shown(second.items) == [(4, 5), 5]
    idle = tail_page(job.reader, query, second.next, wait_s=0)
    assert (idle.items, idle.next) == ([], second.next)
    with pytest.raises(BadInput, match="another query"):
        tail_page(job.reader, replace(query, run=None), second.next, wait_s=0)
    for cursor in ("x", "../" * 10 + "aa", "0" * 32, begun.next):
        with pytest.raises(BadInput, match="cursor"):
            tail_page(job.reader, query, cursor, wait_s=0)


def test_a_page_waits_for_a_line() -> None:
    job = Job()
    query = read_query("", {}, now_ns=job.now_ns)
    begun = tail_page(job.reader, query, None, wait_s=0)
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        job.say(0, 1)

    page = tail_page(job.reader, query, begun.next, wait_s=5, sleep=sleep)
    assert (shown(page.items), len(pauses)) == ([0], 1)


def test_a_tail_that_was_left_too_long_is_over() -> None:
    job = Job()
    query = read_query("", {}, now_ns=job.now_ns)
    begun = tail_page(job.reader, query, None, wait_s=0)
    job.wait(20 * 3600)
    job.say(0, 1)
    job.wait(5 * 3600)
    page = tail_page(job.reader, query, begun.next, wait_s=0)
    assert shown(page.items) == [0]
    job.wait(100 * 3600)
    with pytest.raises(BadInput, match="left for"):
        tail_page(job.reader, query, page.next, wait_s=0)
